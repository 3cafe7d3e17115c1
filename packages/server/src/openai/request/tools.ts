import { invalid, unsupported } from "../openai-error.js";
import { Fields, isObject, type JsonObject } from "./fields.js";

/** A function that the model may call. */
export interface Tool {
  readonly name: string;
  /** JSON schema of its arguments; null when it has none. */
  readonly parameters: JsonObject | null;
  /** As it was given, for the template. */
  readonly json: JsonObject;
}

/** The choice of tools. */
export type ToolChoice = "none" | "auto" | "required" | { readonly name: string };

/** The tools of a request. */
export interface ToolFields {
  readonly tools: readonly Tool[];
  readonly choice: ToolChoice;
  /** Only the first call is answered when false. */
  readonly isParallel: boolean;
}

/** Reads tools and the choice of tools. */
export function readTools(fields: Fields): ToolFields {
  const tools = (fields.list("tools") ?? []).map((json, index) => {
    const path = `tools[${index}]`;
    if (!isObject(json)) throw invalid(path, "must be an object");
    const tool = new Fields(json, path);
    const type = tool.string("type") ?? "function";
    if (type !== "function") {
      throw unsupported(`${path}.type`, `${JSON.stringify(type)} is not supported; use function`);
    }
    const definition = tool.object("function");
    if (!definition) throw invalid(`${path}.function`, "is missing");
    return readFunction(definition, json);
  });
  return {
    tools,
    choice: readChoice(fields, tools),
    isParallel: fields.boolean("parallel_tool_calls") ?? true,
  };
}

/** Reads the definition of a function. */
export function readFunction(definition: Fields, json: JsonObject): Tool {
  const name = definition.string("name");
  if (name === undefined || name === "") throw invalid(definition.at("name"), "is missing");
  const parameters = definition.object("parameters")?.json ?? null;
  return { name, parameters, json };
}

function readChoice(fields: Fields, tools: readonly Tool[]): ToolChoice {
  const value = fields.get("tool_choice");
  if (value === undefined) return tools.length > 0 ? "auto" : "none";
  if (value === "none") return "none";
  if (tools.length === 0) throw invalid("tool_choice", "needs tools; none were given");
  if (value === "auto" || value === "required") return value;
  const choice = fields.object("tool_choice");
  const type = choice?.string("type");
  if (choice === undefined || type !== "function") {
    throw invalid("tool_choice", 'must be "none", "auto", "required" or a function by its name');
  }
  const name = choice.object("function")?.string("name") ?? choice.string("name");
  if (name === undefined || !tools.some((tool) => tool.name === name)) {
    const known = tools.map((tool) => tool.name).join(", ");
    throw invalid(
      "tool_choice",
      `${JSON.stringify(name ?? null)} is not one of the tools ${known}`,
    );
  }
  return { name };
}
