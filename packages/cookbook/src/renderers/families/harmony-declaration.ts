import { pythonText, writeJson } from "../json-text.js";
import type { ToolSpec } from "../message.js";

type Schema = Readonly<Record<string, unknown>>;

/** The declaration of functions in OpenAI's Harmony format, as types of TypeScript. */
export function harmonyDeclaration(tools: readonly ToolSpec[]): string {
  const types = tools.map((tool) => {
    const comment = tool.description ? `// ${tool.description}\n` : "";
    return `${comment}type ${tool.name} = ${parametersOf(tool.parameters ?? {})} => any;`;
  });
  return `# Tools\n\n## functions\n\nnamespace functions {\n\n${types.join("\n\n")}\n\n} // namespace functions`;
}

function parametersOf(schema: Schema): string {
  const properties = Object.entries(fieldsOf(schema["properties"]));
  if (schema["type"] !== "object" || properties.length === 0) return "()";
  const { description } = schema;
  const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
  return [
    description ? `(_: // ${pythonText(description)}` : "(_:",
    "{",
    ...properties.flatMap(([name, value]) => {
      const field = fieldsOf(value);
      const given = "default" in field ? ` // default: ${writeJson(field["default"])}` : "";
      const mark = required.has(name) ? "" : "?";
      return [
        ...commentsOf(field).map((line) => `// ${line}`),
        `${name}${mark}: ${typeOf(field)},${given}`,
      ];
    }),
    "})",
  ].join("\n");
}

function commentsOf(schema: Schema): string[] {
  const { title, description, examples } = schema;
  return [
    ...(title ? [pythonText(title), ""] : []),
    ...(description ? [pythonText(description)] : []),
    ...(Array.isArray(examples) && examples.length > 0
      ? ["Examples:", ...examples.map((example) => `- ${writeJson(example)}`)]
      : []),
  ];
}

function typeOf(schema: Schema): string {
  for (const key of ["oneOf", "anyOf"]) {
    const choices = schema[key];
    if (Array.isArray(choices))
      return choices.map((choice) => typeOf(fieldsOf(choice))).join(" | ");
  }
  const { type } = schema;
  if (Array.isArray(type)) return type.map((one: unknown) => typeOf({ type: one })).join(" | ");
  if (type === "string" && Array.isArray(schema["enum"])) {
    return schema["enum"].map((value) => writeJson(value)).join(" | ");
  }
  const name = plainType(schema, type);
  return schema["nullable"] === true ? `${name} | null` : name;
}

function plainType(schema: Schema, type: unknown): string {
  switch (type) {
    case "string":
    case "boolean":
      return type;
    case "number":
    case "integer":
      return "number";
    case "array":
      return `${typeOf(fieldsOf(schema["items"]))}[]`;
    case "object": {
      const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
      const fields = Object.entries(fieldsOf(schema["properties"])).map(
        ([name, field]) => `${name}${required.has(name) ? "" : "?"}: ${typeOf(fieldsOf(field))}`,
      );
      return `{ ${fields.join(", ")} }`;
    }
    default:
      return "any";
  }
}

function fieldsOf(value: unknown): Schema {
  return typeof value === "object" && value !== null ? (value as Schema) : {};
}
