import { readFileSync } from "node:fs";
import type { FieldNode, Node, ObjectNode } from "../src/schema/node.js";
import { routes, wireTypes, type Route } from "../src/wire/index.js";
import type { HoverText } from "./hover-text.js";
import { readDescriptions } from "./type-descriptions.js";

const oldVersion = "0.4.1";

/** Names of the Python SDK as `read-python-sdk.mjs` found them. */
interface PythonNames {
  readonly version: string;
  /** Of the checkout that the names were read off. */
  readonly commit: string;
  readonly routes: readonly string[];
  readonly types: Readonly<Record<string, readonly string[]>>;
}

export const python = JSON.parse(
  readFileSync(new URL("python-sdk.json", import.meta.url), "utf8"),
) as PythonNames;

/**
 * Where what is newer was read: a commit of the Python SDK's repository whose source shows it. From 0.34 on only
 * its documentation is public.
 */
const newerSources: Readonly<Record<string, string>> = {
  "0.26.0": "6889e5e7",
  "0.26.2": "0beab58b",
  "0.28.0": "7d12c844",
  "0.29.0": "a5ea2f1c",
  "0.29.1": "6ec8a72e",
  "0.30.0": "70756ca2",
  "0.31.0": "e5871efd",
  "0.32.0": "958ce1df",
  "0.33.0": "36b16dc5",
  "0.38.0": "4fb85c7, documentation",
  "0.39.0": "4801e02, documentation",
};

/** What this project follows, and the versions that it was last compared with; `npm run watch:official` reads it too. */
const followed = JSON.parse(readFileSync(new URL("followed.json", import.meta.url), "utf8")) as {
  readonly what: string;
  readonly package: string;
  readonly from: string;
  readonly version: string;
}[];

/** What newer clients can ask for and the server of this project answers with 404 or 400. */
const notOffered: readonly (readonly [what: string, since: string, answer: string])[] = [
  [
    "`optimizer_config`, `optimizer_params` of another type than `adamw`",
    "0.29.0",
    "400, or the step fails in its turn",
  ],
  ["texts in `loss_fn_config`", "0.26.0", "the pass fails in its turn: no loss here takes one"],
  ["`POST /api/v1/save_weights_external`, `external_weights_urls`", "0.28.0", "404"],
  ["`GET /api/v1/billing/usage/checkpoints/current`", "0.33.0", "404"],
  ["`age_encryption_recipients`", "0.33.0", "404 with the routes that have it"],
  ["`DELETE /api/v1/auth/apikey/me`: keys are set with `--api-key`", "0.26.0", "404"],
  ["`POST /api/v1/create_custom_loss`: custom losses run in the client", "0.38.0", "404"],
  ["`search_sessions`, `search_checkpoints`", "0.39.0", "404"],
  ["`external_weights_upload_start`, `external_weights_upload_finish`", "0.39.0", "404"],
];

/** Where the API says nothing, and what the server of this project does. */
const inferred: readonly (readonly [what: string, choice: string])[] = [
  [
    "`finish`: requests that were accepted before",
    "are carried out; the session is closed when they have ended",
  ],
  ["`finish`: requests that come later", "410, heartbeats too; results stay readable"],
  [
    "`finish`: samplers that another process has joined",
    "go on until they are not used for as long as unnamed sampler weights are kept",
  ],
  [
    "`finish`: an unknown reason, a second call, a session that has timed out",
    "2xx; the first reason stays and is part of `GET /api/v1/sessions/{id}`",
  ],
  ["`copy_weights`: name and metadata of the copy", "those of the source"],
  ["`auth/apikey/me`: number and name of a key", "made from its hash; the name of its owner"],
  ["`display_name` of `create_session`", "kept, and part of `GET /api/v1/sessions/{id}`"],
  ["a cancelled sample", "a failed future of category `user`"],
  [
    "`record_stability_info` of a sample",
    "accepted; what it records is not documented, and nothing is recorded",
  ],
  ["`retrieve_futures`: results that are no longer kept", "listed as `failed`"],
  ["`prompt_logprobs_last_n` with `topk_prompt_logprobs`", "limits both"],
  [
    "temperature of `topk_sample_logprobs` and of alternatives",
    "that of the draw, as for `logprobs`; alternatives are drawn at it and report logprobs at 1",
  ],
  [
    "bounds of scores",
    "top-k at most 20, alternatives at most 1,024 and 2^20 cells, targets 2^27 cells by distinct ids",
  ],
  [
    "`optimizer_params` of type `adamw`",
    "the fields of `adam_params`, which win where both are given",
  ],
];

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
    followedTable(),
    routeTable(),
    `## Not offered\n\nThe server of this project answers what newer clients can do besides with an error that names it.\n\n${table(
      ["what", "read in", "answer"],
      notOffered.map(([what, since, answer]) => [what, sourceOf(since), answer]),
    )}`,
    `## Inferred\n\nWhere the API does not say what a server does, this is a choice of this project.\n\n${table(
      ["what", "here"],
      inferred,
    )}`,
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

This package knows ${count} types. Each row says in which version and commit of the Python SDK it was read, and whether
${oldVersion}, the last version with a JSON-only wire, has it; \`ours\` is an addition of this project. Names are those of the
wire; in TypeScript they are camelCase.

Differences that hold everywhere:

- Optional fields are \`null\` when absent, never \`undefined\`; \`null\` is not sent.
- Unknown fields of responses are kept in \`unknownFields\` and sent again; Python drops them.
- Timestamps are \`Date\`s that keep their original text.
- Integers beyond 2^53 are bigints where the table says so and an error everywhere else.
- Token ids are \`Int32Array\`, logprobs of samples \`Float64Array\`, tensors typed arrays.
- Old chunks without \`type\` are accepted.
- \`CheckpointPath\` stands for \`ParsedCheckpointTinkerPath\`; it exists on the client only.`;
}

function followedTable(): string {
  const rows = followed.map((one) => [one.what, code(one.package), one.from, one.version]);
  return `## Versions\n\nThis page was made from these versions. \`npm run watch:official\` asks whether newer ones are out.\n\n${table(["what", "package", "asked with", "version"], rows)}`;
}

function routeTable(): string {
  const rows = Object.entries<Route>(routes).map(([name, route]) => {
    const result = route.result ? ` -> ${code(route.result)}` : "";
    return [
      code(name),
      `${route.method} ${code(route.path)}`,
      route.request ? code(route.request) : "-",
      (route.response ? code(route.response) : "-") + result,
      route.pool,
      markOfRoute(route),
    ];
  });
  return `## Endpoints\n\n${table(["name", "endpoint", "request", "response", "pool", "read in"], rows)}`;
}

/** Deliberate differences to the Python SDK, by type and field; no program carries them. */
const notes: Readonly<Record<string, string>> = {
  "ClientConfigResponse.pjwtAuthEnabled":
    "unknown flags are kept in `unknownFields`; Python drops them",
  "CreateSessionRequest.userMetadata": "never null; Python allows null",
  "GetTokenizerResponse.tokenizer": "an addition of this project, so that clients need no hub",
  "GetSessionResponse.displayName": "an addition of this project",
  "GetSessionResponse.finishReason": "an addition of this project",
  "GetSessionResponse.finishDetail": "an addition of this project",
  "ForwardBackwardInput.lossFnConfig":
    "texts travel in protobuf only, as `loss_fn_config_v2` (0.26.0)",
  "ForwardBackwardRequest.forwardOnly":
    "protobuf only; in JSON a forward pass is a `ForwardRequest`",
  "SetCheckpointTtlRequest.ttlSeconds": "null is sent; it removes the expiry",
};

function objectSection(name: string, object: ObjectNode, described: HoverText | undefined): string {
  const rows = [...object.fields.values()].map((field) => [
    code(field.wireName),
    described?.members.get(field.name)?.text ?? "",
    describeNode(field.node),
    describePresence(field),
    markOfField(name, field, object.since),
    markOfOldField(name, field.since ?? object.since),
    notes[`${name}.${field.name}`] ?? "",
  ]);
  const strictness = object.strict ? "strict" : "keeps unknown fields";
  const since = object.since ? `, since ${object.since}` : "";
  const whose = ownTypes.has(name) ? ", ours" : "";
  const about = described ? `${firstSentence(described.text)} ` : "";
  return `### ${name}\n\n${about}(${strictness}${since}${whose})\n\n${
    rows.length === 0
      ? "No fields."
      : table(["field", "meaning", "form", "presence", "read in", oldVersion, "difference"], rows)
  }`;
}

/** A route that Python only stopped using is still one of the API. */
export const formerRoutes = new Set(["/api/v1/forward"]);

function markOfRoute({ path: route, since }: Route): string {
  const plain = route.replaceAll(/\{\w+\}/g, "{}");
  if (isNewer(since)) return sourceOf(since);
  if (python.routes.includes(plain)) return sourceOf(python.version);
  return formerRoutes.has(plain) ? `${oldVersion}, no longer used` : "ours";
}

function markOfField(
  typeName: string,
  { wireName, protobufOnly, since }: FieldNode,
  typeSince: string | undefined,
): string {
  if (ownTypes.has(typeName)) return "ours";
  const newest = [since, typeSince].find(isNewer);
  if (newest !== undefined) return sourceOf(newest);
  const source = sourceOf(python.version);
  if (protobufOnly) return `${source}, protobuf`;
  if (withoutClass.has(typeName)) return `${source}, without a class`;
  const fields = python.types[typeName] ?? [];
  // What every message of a kind has, Python writes where it is sent.
  return fields.includes(wireName) ? source : wireName === "type" ? `${source}, implied` : "ours";
}

function sourceOf(version: string): string {
  if (version === python.version) return `${version} (${python.commit})`;
  const commit = newerSources[version];
  if (commit === undefined) throw new Error(`parity: no source is on record for ${version}`);
  return `${version} (${commit})`;
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

/** Whether something came after the version that the names were read off. */
export function isNewer(since: string | undefined): since is string {
  return since !== undefined && !isIn(python.version, since);
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
