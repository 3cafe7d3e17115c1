import { invalid, unsupported } from "../openai-error.js";
import {
  Fields,
  isObject,
  type Json,
  type JsonObject,
  readMaxTokens,
  readSampling,
  refuseUnsupported,
  type SamplingFields,
} from "./fields.js";

/** A request for the next message of a conversation. */
export interface ChatRequest extends SamplingFields, ToolFields {
  readonly model: string;
  readonly messages: readonly TemplateMessage[];
  /** null: as many as fit. */
  readonly maxTokens: number | null;
  readonly logprobs: boolean;
  readonly topLogprobs: number;
  readonly format: ResponseFormat;
  /** Variables of the template. */
  readonly variables: Readonly<Record<string, unknown>>;
  readonly addsGenerationPrompt: boolean;
  readonly continuesFinalMessage: boolean;
  readonly separatesReasoning: boolean;
  readonly returnsPromptText: boolean;
}

const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/** Reads the body of a chat completion. */
export function readChatRequest(fields: Fields): ChatRequest {
  refuseUnsupported(fields);
  const logprobs = fields.boolean("logprobs") ?? false;
  const topLogprobs = fields.integer("top_logprobs", 0, 20);
  if (topLogprobs !== undefined && !logprobs) {
    throw invalid("top_logprobs", "needs logprobs: true");
  }
  const continuesFinalMessage = fields.boolean("continue_final_message") ?? false;
  const addsGenerationPrompt = fields.boolean("add_generation_prompt") ?? !continuesFinalMessage;
  if (continuesFinalMessage && addsGenerationPrompt) {
    throw invalid("continue_final_message", "cannot be true together with add_generation_prompt");
  }
  const messages = readMessages(fields);
  if (continuesFinalMessage && messages.at(-1)?.role !== "assistant") {
    throw invalid("continue_final_message", "needs an assistant's message at the end");
  }
  return {
    ...readSampling(fields),
    ...readTools(fields),
    model: readModel(fields),
    messages,
    maxTokens: readMaxTokens(fields, ["max_completion_tokens", "max_tokens"], 1),
    logprobs,
    topLogprobs: topLogprobs ?? 0,
    format: readResponseFormat(fields),
    variables: readVariables(fields),
    addsGenerationPrompt,
    continuesFinalMessage,
    separatesReasoning: fields.boolean("separate_reasoning") ?? true,
    returnsPromptText: fields.boolean("return_prompt_text") ?? false,
  };
}

/** The name of the model, which is always needed. */
export function readModel(fields: Fields): string {
  const model = fields.string("model");
  if (model === undefined || model === "") throw invalid("model", "is missing");
  return model;
}

function readVariables(fields: Fields): Record<string, unknown> {
  const given = fields.object("chat_template_kwargs")?.json ?? {};
  for (const name of ["messages", "tools", "add_generation_prompt"]) {
    if (name in given) throw invalid(`chat_template_kwargs.${name}`, "has a field of its own");
  }
  const effort = fields.get("reasoning_effort");
  if (effort === undefined) return given;
  const isKnown =
    typeof effort === "number" ? effort >= 0 && effort <= 1 : efforts.some((one) => one === effort);
  if (!isKnown) {
    throw invalid("reasoning_effort", `must be one of ${efforts.join(", ")}, or from 0 to 1`);
  }
  const isOff = effort === "none" || effort === 0;
  return {
    reasoning_effort: effort,
    ...(isOff ? { enable_thinking: false } : {}),
    ...given,
  };
}

/** The required content of an answer. */
export type ResponseFormat =
  | { readonly type: "text" }
  | { readonly type: "json_object" }
  | { readonly type: "json_schema"; readonly schema: Json };

/** Reads `response_format`. */
export function readResponseFormat(fields: Fields): ResponseFormat {
  const format = fields.object("response_format");
  const type = format?.choice("type", ["text", "json_object", "json_schema"]);
  if (format && type === undefined) throw invalid("response_format.type", "is missing");
  if (format === undefined || type === undefined || type === "text") return { type: "text" };
  // llama.cpp's clients put the schema beside the type.
  const beside = format.get("schema");
  if (type === "json_object") {
    return beside === undefined ? { type } : { type: "json_schema", schema: beside };
  }
  const definition = format.object("json_schema");
  const schema = definition === undefined ? beside : definition.get("schema");
  if (definition === undefined && beside === undefined) {
    throw invalid("response_format.json_schema", "is missing");
  }
  // A schema may be left out; then any object will do.
  return schema === undefined ? { type: "json_object" } : { type, schema };
}

/** A message in the form that chat templates read. */
export interface TemplateMessage {
  readonly role: string;
  readonly content: string;
  readonly [field: string]: unknown;
}

const roles = ["system", "developer", "user", "assistant", "tool", "function"] as const;

/** Reads the messages of a conversation. */
export function readMessages(fields: Fields): readonly TemplateMessage[] {
  const list = fields.list("messages");
  if (list === undefined) throw invalid("messages", "is missing");
  if (list.length === 0) throw invalid("messages", "is empty; send at least one message");
  return list.map((json, index) => {
    const path = `messages[${index}]`;
    if (!isObject(json)) throw invalid(path, "must be an object");
    return readMessage(new Fields(json, path));
  });
}

function readMessage(fields: Fields): TemplateMessage {
  const role = fields.choice("role", roles);
  if (role === undefined) throw invalid(fields.at("role"), "is missing");
  const name = fields.string("name");
  const toolCallId = fields.string("tool_call_id");
  const message = {
    // `developer` is the newer name of `system`.
    role: role === "developer" ? "system" : role,
    content: readContent(fields, role),
    ...(name === undefined ? {} : { name }),
    ...(toolCallId === undefined ? {} : { tool_call_id: toolCallId }),
  };
  if (role !== "assistant") return message;
  const calls = readCalls(fields);
  const reasoning = fields.string("reasoning_content") ?? fields.string("reasoning");
  return {
    ...message,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
  };
}

function readContent(fields: Fields, role: string): string {
  const content = fields.get("content");
  if (typeof content === "string") return content;
  if (content === undefined) {
    if (role === "assistant") return fields.string("refusal") ?? "";
    throw invalid(fields.at("content"), "is missing");
  }
  if (!Array.isArray(content)) {
    throw invalid(fields.at("content"), "must be a string or a list of parts");
  }
  const texts = content.map((part: Json, index) =>
    readPart(part, `${fields.at("content")}[${index}]`),
  );
  return texts.join("\n");
}

function readPart(json: Json, path: string): string {
  if (!isObject(json)) throw invalid(path, "must be an object");
  const part = new Fields(json, path);
  const type = part.string("type");
  if (type === "text" || type === "input_text" || type === "output_text") {
    return part.string("text") ?? "";
  }
  if (type === "refusal") return part.string("refusal") ?? "";
  throw unsupported(
    path,
    `${JSON.stringify(type ?? null)} is not supported; models here read text`,
  );
}

function readCalls(fields: Fields): readonly object[] {
  return (fields.list("tool_calls") ?? []).map((json, index) => {
    const path = `${fields.at("tool_calls")}[${index}]`;
    if (!isObject(json)) throw invalid(path, "must be an object");
    const call = new Fields(json, path);
    const called = call.object("function");
    const name = called?.string("name");
    if (called === undefined || name === undefined) {
      throw invalid(`${path}.function.name`, "is missing");
    }
    const id = call.string("id");
    return {
      ...(id === undefined ? {} : { id }),
      type: "function",
      function: { name, arguments: parsedArguments(called.get("arguments")) },
    };
  });
}

/** Templates want an object; other texts stay unchanged. */
export function parsedArguments(given: Json | undefined): Json {
  if (typeof given !== "string") return given ?? {};
  if (given.trim() === "") return {};
  try {
    return JSON.parse(given) as Json;
  } catch {
    return given;
  }
}

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
