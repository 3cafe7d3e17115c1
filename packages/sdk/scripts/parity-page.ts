import { readFileSync } from "node:fs";
import type { FieldNode, Node, ObjectNode } from "../src/schema/node.js";
import { routes, wireTypes } from "../src/wire/index.js";
import type { HoverText } from "./hover-text.js";
import { readDescriptions } from "./type-descriptions.js";

const oldVersion = "0.4.1";

/** Names of the Python SDK as `read-python-sdk.mjs` found them. */
interface PythonNames {
  readonly version: string;
  readonly routes: readonly string[];
  readonly types: Readonly<Record<string, readonly string[]>>;
}

export const python = JSON.parse(
  readFileSync(new URL("python-sdk.json", import.meta.url), "utf8"),
) as PythonNames;

/** Python has no class for these; it reads or writes their fields by hand. */
export const withoutClass = new Set([
  "AuthTokenRequest",
  "AssignSessionProjectRequest",
  "CompleteMetadataResponse",
  "SetCheckpointTtlRequest",
  "TraceExportResponse",
  "WeightsInfoRequest",
]);

/** Types that exist in this project only. */
export const ownTypes = new Set(["GetTokenizerResponse"]);

/** The text of docs/parity.md: every type and field, read off the schemas and their interfaces. */
export function renderParityPage(): string {
  const descriptions = readDescriptions();
  const named = Object.entries(wireTypes)
    .map(([name, { node }]) => ({ name, node }))
    .toSorted((a, b) => a.name.localeCompare(b.name, "en"));
  const objects = named.flatMap(({ name, node }) => {
    const object = objectOf(node);
    return object ? [{ name, object }] : [];
  });
  const others = named.filter(({ node }) => !objectOf(node));
  return `${[
    header(named.length),
    routeTable(),
    "## Aliases, enumerations and unions",
    table(
      ["type", "form", "meaning"],
      others.map(({ name, node }) => [
        code(name),
        describeNode(node),
        descriptions.get(name)?.text ?? "",
      ]),
    ),
    "## Types",
    ...objects.map(({ name, object }) => objectSection(name, object, descriptions.get(name))),
  ].join("\n\n")}\n`;
}

function header(count: number): string {
  return `# Parity with the Python SDK

Generated from the schemas and the text of their interfaces by \`npm run generate:parity -w packages/sdk\`; a test fails when it is stale.

This package knows ${count} types. A field is marked for the Python SDK ${python.version} and for ${oldVersion}, the last
version with a JSON-only wire; \`ours\` is an addition of this project. Names are those of the wire; in TypeScript they are camelCase.

Differences that hold everywhere:

- Optional fields are \`null\` when absent, never \`undefined\`; \`null\` is not sent.
- Unknown fields of responses are kept in \`unknownFields\` and sent again; Python drops them.
- Timestamps are \`Date\`s that keep their original text.
- Integers beyond 2^53 are bigints where the table says so and an error everywhere else.
- Token ids are \`Int32Array\`, logprobs of samples \`Float64Array\`, tensors typed arrays.
- Old chunks without \`type\` are accepted.
- \`CheckpointPath\` stands for \`ParsedCheckpointTinkerPath\`; it exists on the client only.`;
}

function routeTable(): string {
  const rows = Object.entries(routes).map(([name, route]) => {
    const result = "result" in route ? ` -> ${code(route.result)}` : "";
    return [
      code(name),
      `${route.method} ${code(route.path)}`,
      route.request ? code(route.request) : "-",
      (route.response ? code(route.response) : "-") + result,
      route.pool,
      markOfRoute(route.path),
    ];
  });
  return `## Endpoints\n\n${table(["name", "endpoint", "request", "response", "pool", python.version], rows)}`;
}

function objectSection(name: string, object: ObjectNode, described: HoverText | undefined): string {
  const rows = [...object.fields.values()].map((field) => [
    code(field.wireName),
    described?.members.get(field.name)?.text ?? "",
    describeNode(field.node),
    describePresence(field),
    markOfField(name, field),
    markOfOldField(name, field.since ?? object.since),
    field.note ?? "",
  ]);
  const strictness = object.strict ? "strict" : "keeps unknown fields";
  const since = object.since ? `, since ${object.since}` : "";
  const whose = ownTypes.has(name) ? ", ours" : "";
  const about = described ? `${firstSentence(described.text)} ` : "";
  return `### ${name}\n\n${about}(${strictness}${since}${whose})\n\n${
    rows.length === 0
      ? "No fields."
      : table(
          ["field", "meaning", "form", "presence", python.version, oldVersion, "difference"],
          rows,
        )
  }`;
}

/** A route that Python only stopped using is still one of the API. */
export const formerRoutes = new Set(["/api/v1/forward"]);

function markOfRoute(route: string): string {
  const plain = route.replaceAll(/\{\w+\}/g, "{}");
  if (python.routes.includes(plain)) return "yes";
  return formerRoutes.has(plain) ? "no longer" : "ours";
}

function markOfField(typeName: string, { wireName, protobufOnly }: FieldNode): string {
  if (ownTypes.has(typeName)) return "ours";
  if (protobufOnly) return "protobuf";
  if (withoutClass.has(typeName)) return "yes, without a class";
  const fields = python.types[typeName] ?? [];
  // What every message of a kind has, Python writes where it is sent.
  return fields.includes(wireName) ? "yes" : wireName === "type" ? "implied" : "no";
}

function markOfOldField(typeName: string, since: string | undefined): string {
  if (ownTypes.has(typeName)) return "ours";
  return isIn(oldVersion, since) ? "yes" : `since ${since}`;
}

function describePresence(field: FieldNode): string {
  if (field.presence === "optional" && !field.isPromised) return "optional";
  if (field.presence === "required" || field.isPromised) return "required";
  return `default ${code(JSON.stringify(field.default))}`;
}

function describeNode(node: Node): string {
  switch (node.kind) {
    case "integer":
      return node.allowBig ? "integer (bigint beyond 2^53)" : "integer";
    case "literal":
      return code(JSON.stringify(node.value));
    case "enum":
      return [
        node.values.map(code).join(" or "),
        node.ignoreCase ? "in any case" : "",
        node.isOpen ? "others are kept" : "",
        node.fallback ? `others read as ${code(node.fallback)}` : "",
      ]
        .filter(Boolean)
        .join(", ");
    case "bytes":
      return "base64";
    case "json":
      return "any JSON";
    case "tokens":
    case "integers":
      return "integer list";
    case "floats":
      return "number list";
    case "nullable":
      return `${describeNode(node.item)} or null`;
    case "array":
      return `list of ${describeNode(node.item)}`;
    case "tuple":
      return `[${node.items.map(describeNode).join(", ")}]`;
    case "record":
      return `map of ${describeNode(node.item)}`;
    case "measured":
      return describeNode(node.item);
    case "object":
    case "mapped":
      return code(node.name);
    case "union":
      return Object.values(node.options).map(describeNode).join(" or ");
    default:
      return node.kind;
  }
}

/** The object behind a type; variants of one object (tensors by dtype) count as that object. */
function objectOf(node: Node): ObjectNode | undefined {
  if (node.kind === "object") return node;
  if (node.kind !== "mapped") return undefined;
  if (node.inner.kind !== "union") return objectOf(node.inner);
  const { tag = "", options } = node.inner;
  const [first] = Object.values(options);
  const object = first && objectOf(first);
  const tagField = object?.fields.get(tag);
  if (!object || !tagField) return object;
  const values: Node = { kind: "enum", values: Object.keys(options) };
  const fields = new Map(object.fields);
  fields.set(tag, { ...tagField, node: values, presence: "required" });
  return { ...object, fields };
}

function isIn(version: string, since: string | undefined): boolean {
  return since === undefined || since.localeCompare(version, "en", { numeric: true }) <= 0;
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(heads), line(heads.map(() => "---")), ...rows.map(line)].join("\n");
}

function firstSentence(text: string): string {
  return text.split("\n")[0] ?? "";
}

function code(text: string): string {
  return `\`${text}\``;
}
