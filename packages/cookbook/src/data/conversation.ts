import type { ContentPart, Message, ToolCall, ToolSpec } from "../renderers/index.js";
import { DataError } from "./data-error.js";

/** A conversation to learn from. */
export interface Conversation {
  readonly messages: readonly Message[];
  /** Functions that the model may call in it. */
  readonly tools?: readonly ToolSpec[] | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

/** Forms of rows that are known, each by the fields that it cannot do without. */
const shapes: readonly {
  readonly fields: readonly string[];
  readonly read: (row: Fields) => Conversation;
}[] = [
  { fields: ["messages"], read: readMessages },
  { fields: ["conversations"], read: (row) => readShareGpt(row, "conversations") },
  { fields: ["conversation"], read: (row) => readShareGpt(row, "conversation") },
  { fields: ["instruction", "output"], read: readAlpaca },
  { fields: ["prompt", "completion"], read: (row) => readPair(row, "prompt", "completion") },
  { fields: ["prompt", "response"], read: (row) => readPair(row, "prompt", "response") },
  { fields: ["question", "answer"], read: (row) => readPair(row, "question", "answer") },
];

/** Reads a row in one of the known forms; what is missing or wrong is named with its field. */
export function toConversation(row: unknown): Conversation {
  if (typeof row !== "object" || row === null || Array.isArray(row)) {
    throw new DataError(`is ${kindOf(row)}, not an object`);
  }
  const fields = row as Fields;
  const shape = shapes.find((entry) => entry.fields.every((name) => fields[name] !== undefined));
  if (!shape) {
    const found = Object.keys(fields).join(", ") || "none";
    const known = shapes.map((entry) => entry.fields.join(" + ")).join("; ");
    throw new DataError(`has none of the known forms (${known}); its fields are: ${found}`);
  }
  const conversation = shape.read(fields);
  if (conversation.messages.length === 0) throw new DataError(`${shape.fields[0]}: is empty`);
  return conversation;
}

/** Reads a list of messages in the form of OpenAI's API and of the Python cookbook. */
export function toMessages(value: unknown, field = "messages"): Message[] {
  if (!Array.isArray(value)) throw new DataError(`${field}: is ${kindOf(value)}, not a list`);
  const messages = value.map((message, index) => readMessage(message, `${field}[${index}]`));
  const hasWeights = value.some((message: Fields) => message["weight"] !== undefined);
  if (!hasWeights) return messages;
  // OpenAI's files say by a weight of 0 or 1 which answers are learned.
  return messages.map((message, index) => ({
    ...message,
    trainable: message.role === "assistant" && value[index].weight !== 0,
  }));
}

function readMessages(row: Fields): Conversation {
  const tools = row["tools"];
  if (tools === undefined || tools === null) return { messages: toMessages(row["messages"]) };
  if (!Array.isArray(tools)) throw new DataError(`tools: is ${kindOf(tools)}, not a list`);
  return { messages: toMessages(row["messages"]), tools: tools.map(readTool) };
}

function readMessage(value: unknown, field: string): Message {
  if (typeof value !== "object" || value === null) {
    throw new DataError(`${field}: is ${kindOf(value)}, not a message`);
  }
  const { role, content, tool_calls, tool_call_id, name, weight, trainable, ...rest } =
    value as Fields;
  const toolCalls = (value as Fields)["toolCalls"] ?? tool_calls;
  const toolCallId = (value as Fields)["toolCallId"] ?? tool_call_id;
  const reasoning = rest["reasoning_content"];
  if (typeof role !== "string" || role === "") {
    throw new DataError(`${field}.role: is ${kindOf(role)}, not a text such as "user"`);
  }
  if (weight !== undefined && weight !== 0 && weight !== 1) {
    throw new DataError(`${field}.weight: must be 0 or 1`);
  }
  const hasCalls = Array.isArray(toolCalls) && toolCalls.length > 0;
  const parts = readContent(content, `${field}.content`, hasCalls);
  return {
    role,
    content:
      typeof reasoning === "string" && reasoning !== ""
        ? [{ type: "thinking", thinking: reasoning }, ...asParts(parts)]
        : parts,
    ...(hasCalls && {
      toolCalls: toolCalls.map((call, index) =>
        readToolCall(call as Fields, `${field}.tool_calls[${index}]`),
      ),
    }),
    ...(typeof toolCallId === "string" && { toolCallId }),
    ...(typeof name === "string" && { name }),
    ...(typeof trainable === "boolean" && { trainable }),
  };
}

function readContent(value: unknown, field: string, mayBeAbsent: boolean): Message["content"] {
  if (typeof value === "string") return value;
  if ((value === null || value === undefined) && mayBeAbsent) return "";
  if (!Array.isArray(value)) throw new DataError(`${field}: is ${kindOf(value)}, not a text`);
  return value.map((part: Fields, index): ContentPart => {
    const place = `${field}[${index}]`;
    if (part["type"] === "text" && typeof part["text"] === "string") {
      return { type: "text", text: part["text"] };
    }
    if (part["type"] === "thinking" && typeof part["thinking"] === "string") {
      return { type: "thinking", thinking: part["thinking"] };
    }
    if (part["type"] === "image" && typeof part["image"] === "string") {
      return { type: "image", image: part["image"] };
    }
    const url = (part["image_url"] as Fields | undefined)?.["url"] ?? part["image_url"];
    if (part["type"] === "image_url" && typeof url === "string") {
      return { type: "image", image: url };
    }
    throw new DataError(`${place}: is not a text, thinking or image part`);
  });
}

function readToolCall(call: Fields, field: string): ToolCall {
  const { name, arguments: given } = (call["function"] ?? {}) as Fields;
  if (typeof name !== "string") throw new DataError(`${field}.function.name: is missing`);
  const id = typeof call["id"] === "string" ? call["id"] : null;
  const written = typeof given === "string" ? given : JSON.stringify(given ?? {});
  return { id, function: { name, arguments: written } };
}

function readTool(tool: unknown, index: number): ToolSpec {
  const outer = (tool ?? {}) as Fields;
  const { name, description = "", parameters = {} } = (outer["function"] ?? outer) as Fields;
  if (typeof name !== "string") throw new DataError(`tools[${index}].name: is missing`);
  return {
    name,
    description: String(description),
    parameters: parameters as ToolSpec["parameters"],
  };
}

const shareGptRoles: Readonly<Record<string, string>> = {
  human: "user",
  user: "user",
  gpt: "assistant",
  chatgpt: "assistant",
  assistant: "assistant",
  model: "assistant",
  system: "system",
  tool: "tool",
  observation: "tool",
  function_response: "tool",
};

function readShareGpt(row: Fields, field: string): Conversation {
  const turns = row[field];
  if (!Array.isArray(turns)) throw new DataError(`${field}: is ${kindOf(turns)}, not a list`);
  const messages = turns.map((turn: Fields, index): Message => {
    if (turn?.["role"] !== undefined) return readMessage(turn, `${field}[${index}]`);
    const role = shareGptRoles[String(turn?.["from"])];
    if (!role) throw new DataError(`${field}[${index}].from: ${kindOf(turn?.["from"])} is no role`);
    return { role, content: readContent(turn["value"], `${field}[${index}].value`, false) };
  });
  return { messages: withSystem(row, messages) };
}

function readAlpaca(row: Fields): Conversation {
  const instruction = text(row, "instruction");
  const input = row["input"] === undefined || row["input"] === null ? "" : text(row, "input");
  const question = input === "" ? instruction : `${instruction}\n\n${input}`;
  const exchange = [
    { role: "user", content: question },
    { role: "assistant", content: text(row, "output") },
  ];
  return { messages: withSystem(row, exchange) };
}

function readPair(row: Fields, asked: string, answered: string): Conversation {
  const side = (field: string, role: string): Message[] =>
    Array.isArray(row[field])
      ? toMessages(row[field], field)
      : [{ role, content: text(row, field) }];
  return { messages: withSystem(row, [...side(asked, "user"), ...side(answered, "assistant")]) };
}

function withSystem(row: Fields, messages: Message[]): Message[] {
  const { system } = row;
  if (typeof system !== "string" || system === "") return messages;
  return [{ role: "system", content: system }, ...messages];
}

function text(row: Fields, field: string): string {
  const value = row[field];
  if (typeof value !== "string") throw new DataError(`${field}: is ${kindOf(value)}, not a text`);
  return value;
}

function asParts(content: Message["content"]): readonly ContentPart[] {
  if (typeof content !== "string") return content;
  return content === "" ? [] : [{ type: "text", text: content }];
}

function kindOf(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
