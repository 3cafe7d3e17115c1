import { invalid, unsupported } from "../openai-error.js";
import { Fields, isObject, type Json, type JsonObject } from "../request/fields.js";
import type { RecentItems } from "./recent-items.js";

/** A request of the responses API. */
export interface ResponsesRequest {
  /** The same as a chat completion. */
  readonly chat: JsonObject;
  /** Fields of the request that the response repeats. */
  readonly repeated: JsonObject;
  readonly stream: boolean;
}

/** Unsupported fields: they need stored requests or external services. */
const refused: Readonly<Record<string, string>> = {
  previous_response_id: "is not supported: nothing is stored; send the whole input",
  conversation: "is not supported: nothing is stored; send the whole input",
  background: "is not supported",
  prompt: "is not supported: prompts are not stored here",
  max_tool_calls: "is not supported",
};

/** Reads a request of the responses API as one for a chat completion. */
export function readResponsesRequest(
  fields: Fields,
  recent: RecentItems,
  owner: string,
): ResponsesRequest {
  for (const [name, problem] of Object.entries(refused)) {
    const value = fields.get(name);
    if (value !== undefined && value !== false) throw unsupported(name, problem);
  }
  const truncation = fields.choice("truncation", ["auto", "disabled"]);
  if (truncation === "auto") throw unsupported("truncation", "can only be disabled");
  const stream = fields.boolean("stream") ?? false;
  const instructions = fields.string("instructions");
  const tools = readTools(fields);
  const format = fields.object("text")?.object("format");
  const effort = fields.object("reasoning")?.get("effort");
  const topLogprobs = fields.integer("top_logprobs", 0, 20);
  const wantsLogprobs =
    topLogprobs !== undefined ||
    (fields.list("include") ?? []).some((one) => one === "message.output_text.logprobs");
  const choice = fields.get("tool_choice");
  const messages = [
    ...(instructions === undefined ? [] : [{ role: "system", content: instructions }]),
    ...readInput(fields, recent, owner),
  ];
  const optional: Record<string, Json | undefined> = {
    max_completion_tokens: fields.get("max_output_tokens"),
    temperature: fields.get("temperature"),
    top_p: fields.get("top_p"),
    parallel_tool_calls: fields.get("parallel_tool_calls"),
    reasoning_effort: effort,
    tool_choice: isObject(choice) ? { type: choice["type"] ?? null, function: choice } : choice,
    response_format: format === undefined ? undefined : toResponseFormat(format),
    top_logprobs: topLogprobs,
    chat_template_kwargs: fields.get("chat_template_kwargs"),
    seed: fields.get("seed"),
    top_k: fields.get("top_k"),
  };
  const chat: Record<string, Json> = {
    model: fields.get("model") ?? null,
    messages,
    tools: tools.map((tool) => ({ type: "function", function: tool })),
    ...(wantsLogprobs ? { logprobs: true } : {}),
  };
  for (const [name, value] of Object.entries(optional)) if (value !== undefined) chat[name] = value;
  return { chat, stream, repeated: repeatedFields(fields, effort) };
}

function repeatedFields(fields: Fields, effort: Json | undefined): JsonObject {
  return {
    instructions: fields.get("instructions") ?? null,
    max_output_tokens: fields.get("max_output_tokens") ?? null,
    metadata: fields.get("metadata") ?? {},
    parallel_tool_calls: fields.get("parallel_tool_calls") ?? true,
    previous_response_id: null,
    reasoning: { effort: effort ?? null, summary: null },
    store: false,
    temperature: fields.get("temperature") ?? 1,
    text: fields.get("text") ?? { format: { type: "text" } },
    tool_choice: fields.get("tool_choice") ?? "auto",
    tools: fields.get("tools") ?? [],
    top_p: fields.get("top_p") ?? 1,
    truncation: "disabled",
    user: fields.get("user") ?? null,
  };
}

function readTools(fields: Fields): JsonObject[] {
  return (fields.list("tools") ?? []).map((json, index) => {
    const path = `tools[${index}]`;
    if (!isObject(json)) throw invalid(path, "must be an object");
    const { type, ...definition } = json;
    if (type === "function") return definition;
    throw unsupported(`${path}.type`, `${JSON.stringify(type)} is not supported; use function`);
  });
}

function toResponseFormat(format: Fields): JsonObject {
  const { type = null, ...rest } = format.json;
  return type === "json_schema" ? { type, json_schema: rest } : { type };
}

function readInput(fields: Fields, recent: RecentItems, owner: string): JsonObject[] {
  const input = fields.get("input");
  if (input === undefined) throw invalid("input", "is missing");
  if (typeof input === "string") return [{ role: "user", content: input }];
  const list = fields.list("input") ?? [];
  if (list.length === 0) throw invalid("input", "is empty");
  const reader = new InputReader();
  for (const [index, json] of list.entries()) {
    const path = `input[${index}]`;
    if (!isObject(json)) throw invalid(path, "must be an object");
    const isReference = json["type"] === "item_reference";
    const item = isReference ? recent.get(owner, json["id"] ?? null) : json;
    if (item === undefined) {
      throw invalid(
        path,
        `the item ${JSON.stringify(json["id"])} is not known any more; set store: false`,
      );
    }
    reader.push(new Fields(item, path));
  }
  return reader.messages();
}

/** Combines items to messages: thoughts, text and calls of one turn belong to one. */
class InputReader {
  readonly #messages: JsonObject[] = [];
  #turn: Record<string, Json> | null = null;

  push(item: Fields): void {
    const type = item.string("type") ?? "message";
    switch (type) {
      case "message":
        this.#message(item);
        break;
      case "reasoning":
        this.#add("reasoning_content", textOf(item, "content") || textOf(item, "summary"));
        break;
      case "function_call":
        this.#call(item);
        break;
      case "function_call_output":
        this.#endTurn();
        this.#messages.push({
          role: "tool",
          tool_call_id: item.get("call_id") ?? null,
          content: item.get("output") ?? "",
        });
        break;
      default:
        throw unsupported(item.at("type"), `${JSON.stringify(type)} is not supported`);
    }
  }

  messages(): JsonObject[] {
    this.#endTurn();
    return this.#messages;
  }

  #message(item: Fields): void {
    const role = item.get("role") ?? null;
    const content = item.get("content") ?? null;
    if (role !== "assistant") {
      this.#endTurn();
      this.#messages.push({ role, content });
      return;
    }
    if (this.#turn !== null && "content" in this.#turn) this.#endTurn();
    this.#turn = { ...this.#turn, content };
  }

  #call(item: Fields): void {
    const calls = (this.#turn?.["tool_calls"] as Json[] | undefined) ?? [];
    const { name = null, arguments: given = null, call_id: id = null } = item.json;
    const call = { id, type: "function", function: { name, arguments: given } };
    this.#turn = { ...this.#turn, tool_calls: [...calls, call] };
  }

  #add(field: string, text: string): void {
    if (this.#turn !== null) this.#endTurn();
    if (text !== "") this.#turn = { [field]: text };
  }

  #endTurn(): void {
    if (this.#turn !== null) this.#messages.push({ role: "assistant", ...this.#turn });
    this.#turn = null;
  }
}

function textOf(item: Fields, name: string): string {
  const parts = item.list(name) ?? [];
  const texts = parts.map((part) => (isObject(part) ? part["text"] : null));
  return texts.filter((text) => typeof text === "string").join("\n");
}
