import { ArgumentError } from "tinker-ts";
import { pythonText, writeJson } from "../json-text.js";
import type { ToolSpec } from "../message.js";

// Kimi K2.5 reads functions as types of TypeScript. Required fields come first, each group by name;
// definitions become interfaces in front of their function.

type Schema = Readonly<Record<string, unknown>>;

/** The declaration of functions for Kimi K2.5 and K2.6. */
export function kimiDeclaration(tools: readonly ToolSpec[]): string {
  const functions = tools.map((tool) => new FunctionWriter(tool).write());
  return `# Tools\n\n## functions\nnamespace functions {\n${functions.join("\n")}\n}\n`;
}

const constraintsOf: Readonly<Record<string, readonly string[]>> = {
  string: ["maxLength", "minLength", "pattern"],
  number: ["maximum", "minimum"],
  integer: ["maximum", "minimum"],
  array: ["maxItems", "minItems"],
};

const unionNames: Readonly<Record<string, string>> = {
  integer: "number",
  object: "{}",
  array: "Array<any>",
};

class FunctionWriter {
  readonly #tool: ToolSpec;
  readonly #definitions: Schema;
  #refersToItself = false;

  constructor(tool: ToolSpec) {
    this.#tool = tool;
    this.#definitions = fieldsOf(tool.parameters?.["$defs"]);
  }

  write(): string {
    const { name, description, parameters } = this.#tool;
    const schema: Schema = parameters ?? {};
    const fields = this.#object(schema, "");
    const interfaces = Object.entries(this.#definitions).map(([key, definition]) => {
      const comment = comments(pythonText(fieldsOf(definition)["description"] ?? ""), "");
      return `${comment}interface ${key} ${this.#type(definition, "")}`;
    });
    if (this.#refersToItself) {
      const given = Object.entries(fieldsOf(schema["properties"])).map(([key, field]) =>
        this.#field(key, field, !requiredOf(schema).has(key), "  "),
      );
      const body = given.length === 0 ? "" : `\n${given.join(",\n")}\n`;
      interfaces.unshift(`interface parameters {${body}}`);
    }
    const type = this.#refersToItself ? "parameters" : fields;
    return [
      interfaces.join("\n"),
      comments(description ?? "", "").replace(/\n$/, ""),
      `type ${name} = (_: ${type}) => any;`,
    ]
      .filter((part) => part !== "")
      .join("\n");
  }

  #object(schema: Schema, indent: string): string {
    const inner = `${indent}  `;
    const required = requiredOf(schema);
    const names = Object.keys(fieldsOf(schema["properties"])).toSorted(compare);
    const ordered = [
      ...names.filter((name) => required.has(name)),
      ...names.filter((name) => !required.has(name)),
    ];
    const lines = ordered.map((name) =>
      this.#field(name, fieldsOf(schema["properties"])[name], !required.has(name), inner),
    );
    const more = schema["additionalProperties"];
    if (more !== undefined && more !== null) {
      const type = typeof more === "boolean" ? (more ? "any" : "never") : this.#type(more, inner);
      lines.push(`${inner}[k: string]: ${type}`);
    }
    return lines.length === 0 ? "{}" : `{\n${lines.join(",\n")}\n${indent}}`;
  }

  #field(name: string, schema: unknown, isOptional: boolean, indent: string): string {
    const given = fieldsOf(schema)["default"];
    const isPrinted = typeof given === "number" || typeof given === "boolean";
    const note =
      given === undefined || given === null
        ? ""
        : `${indent}// Default: ${isPrinted ? pythonText(given) : writeJson(given)}\n`;
    const type = this.#type(schema, indent);
    return `${documentation(schema, indent)}${note}${indent}${name}${isOptional ? "?" : ""}: ${type}`;
  }

  #type(schema: unknown, indent: string): string {
    if (typeof schema === "boolean") return schema ? "any" : "null";
    const fields = fieldsOf(schema);
    const { type } = fields;
    if ("$ref" in fields) return this.#reference(pythonText(fields["$ref"]));
    if (Array.isArray(fields["anyOf"])) {
      return fields["anyOf"].map((choice: unknown) => this.#type(choice, indent)).join(" | ");
    }
    if (Array.isArray(fields["enum"])) {
      return fields["enum"]
        .map((value: unknown) => (typeof value === "string" ? `"${value}"` : pythonText(value)))
        .join(" | ");
    }
    if (Array.isArray(type)) {
      return type.map((one: string) => unionNames[one] ?? one).join(" | ");
    }
    if (type === "object") return this.#object(fields, indent);
    if (type === "array") return this.#array(fields, indent);
    if (typeof type === "string") return type === "integer" ? "number" : type;
    if (Object.keys(fields).length === 0) return "any";
    throw this.#refuse(`a schema without a type: ${writeJson(fields)}`);
  }

  #array(schema: Schema, indent: string): string {
    const { items } = schema;
    const isAny = items === undefined || (typeof items === "object" && isEmpty(items));
    if (isAny) return "Array<any>";
    const inner = `${indent}  `;
    const comment = documentation(items, inner);
    if (comment === "") return `Array<${this.#type(items, indent)}>`;
    return `Array<\n${comment}${inner}${this.#type(items, inner)}\n${indent}>`;
  }

  #reference(reference: string): string {
    if (reference === "#") {
      this.#refersToItself = true;
      return "parameters";
    }
    const name = /^#\/\$defs\/(.+)$/.exec(reference)?.[1];
    if (name !== undefined && Object.hasOwn(this.#definitions, name)) return name;
    throw this.#refuse(`the reference ${reference}`);
  }

  #refuse(what: string): ArgumentError {
    return new ArgumentError(`tools ${this.#tool.name}.parameters`, `cannot declare ${what}`);
  }
}

/** The comment lines of a schema: its description and its limits. */
function documentation(schema: unknown, indent: string): string {
  const fields = fieldsOf(schema);
  const kind = pythonText(fields["type"] ?? "");
  const isPlain = !("$ref" in fields || "anyOf" in fields || "enum" in fields);
  const limits = (isPlain && Object.hasOwn(constraintsOf, kind) ? constraintsOf[kind]! : [])
    .filter((key) => key in fields)
    .map((key) => `${key}: ${pythonText(fields[key])}`);
  const line = limits.length === 0 ? "" : `${indent}// ${limits.join(", ")}\n`;
  return comments(pythonText(fields["description"] ?? ""), indent) + line;
}

function comments(text: string, indent: string): string {
  if (text === "") return "";
  const lines = text.split("\n").map((line) => (line === "" ? "" : `${indent}// ${line}`));
  return `${lines.join("\n")}\n`;
}

function requiredOf(schema: Schema): ReadonlySet<unknown> {
  return new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
}

function fieldsOf(value: unknown): Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Schema)
    : {};
}

function isEmpty(value: object | null): boolean {
  return value === null || Object.keys(value).length === 0;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
