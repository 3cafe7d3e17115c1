import { ArgumentError } from "tinker-ts";
import {
  fromOpenAIMessages,
  splitThinking,
  type Message,
  type ToolSpec,
} from "../renderers/index.js";
import { DataError } from "./data-error.js";

/** A conversation to learn from. */
export interface Conversation {
  readonly messages: readonly Message[];
  /** Functions that the model may call in it. */
  readonly tools?: readonly ToolSpec[] | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

/** The known forms of rows, each with its required fields. */
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

/** Reads a row in one of the known forms; errors name the field. */
export function toConversation(row: unknown): Conversation {
  if (typeof row !== "object" || row === null || Array.isArray(row)) {
    throw new DataError(`expected an object, got ${kindOf(row)}`);
  }
  const fields = row as Fields;
  const shape = shapes.find((entry) => entry.fields.every((name) => fields[name] !== undefined));
  if (!shape) {
    const found = Object.keys(fields).join(", ") || "none";
    const known = shapes.map((entry) => entry.fields.join(" + ")).join("; ");
    throw new DataError(`unknown row format with the fields ${found}; expected one of: ${known}`);
  }
  const conversation = shape.read(fields);
  if (conversation.messages.length === 0) throw new DataError(`${shape.fields[0]}: empty list`);
  return { ...conversation, messages: conversation.messages.map(splitThinking) };
}

/** Reads a list of messages in the form of OpenAI's API or of this package. */
export function toMessages(value: unknown, field = "messages"): Message[] {
  if (!Array.isArray(value)) throw new DataError(`${field}: expected a list, got ${kindOf(value)}`);
  const given = value as readonly (Fields & Partial<Message>)[];
  for (const [index, message] of given.entries()) checkMessage(message, `${field}[${index}]`);
  const messages = readOpenAI(given, field);
  const hasWeights = given.some(({ weight }) => weight !== undefined);
  return messages.map((message, index) => {
    const { toolCalls, toolCallId, trainable, weight } = given[index]!;
    // In OpenAI's files a weight of 0 or 1 selects the answers to learn.
    const isTrainable = hasWeights ? message.role === "assistant" && weight !== 0 : trainable;
    return {
      ...message,
      ...(toolCalls && { toolCalls }),
      ...(toolCallId !== undefined && { toolCallId }),
      ...(isTrainable !== undefined && { trainable: isTrainable }),
    };
  });
}

function readOpenAI(given: readonly Fields[], field: string): Message[] {
  try {
    return fromOpenAIMessages(given);
  } catch (error) {
    if (!(error instanceof ArgumentError)) throw error;
    throw new DataError(error.message.replace(/^messages/, field), { cause: error });
  }
}

const knownRoles = ["assistant", "user", "system", "tool"];

/** True for a text that differs from a word by its case, or by one or two letters. */
function isMisspelt(given: string, word: string): boolean {
  if (given === word) return false;
  const lower = given.toLowerCase();
  if (lower === word) return true;
  const allowed = word.length > 5 ? 2 : 1;
  const hasLength = Math.abs(lower.length - word.length) <= 1;
  return hasLength && sharedEnds(lower, word) >= word.length - allowed;
}

/** The number of letters that two words share at their beginnings and ends together. */
function sharedEnds(a: string, b: string): number {
  let start = 0;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  return start + end;
}

/** Checks the required fields of a message. */
function checkMessage(message: Fields | null, field: string): void {
  if (typeof message !== "object" || message === null) {
    throw new DataError(`${field}: expected a message, got ${kindOf(message)}`);
  }
  const { role, content, weight, tool_calls: calls, toolCalls = calls } = message;
  if (typeof role !== "string" || role === "") {
    throw new DataError(`${field}.role: expected text such as "user", got ${kindOf(role)}`);
  }
  const meant = knownRoles.find((known) => isMisspelt(role, known));
  if (meant) throw new DataError(`${field}.role: unknown role "${role}"; did you mean "${meant}"?`);
  const hasCalls = Array.isArray(toolCalls) && toolCalls.length > 0;
  if (typeof content !== "string" && !Array.isArray(content) && !hasCalls) {
    throw new DataError(`${field}.content: expected text, got ${kindOf(content)}`);
  }
  if (weight !== undefined && weight !== 0 && weight !== 1) {
    throw new DataError(`${field}.weight: must be 0 or 1`);
  }
}

function readMessages(row: Fields): Conversation {
  const tools = row["tools"];
  if (tools === undefined || tools === null) return { messages: toMessages(row["messages"]) };
  if (!Array.isArray(tools)) throw new DataError(`tools: expected a list, got ${kindOf(tools)}`);
  return { messages: toMessages(row["messages"]), tools: tools.map(readTool) };
}

function readTool(tool: unknown, index: number): ToolSpec {
  const outer = (tool ?? {}) as Fields;
  const { name, description = "", parameters = {} } = (outer["function"] ?? outer) as Fields;
  if (typeof name !== "string")
    throw new DataError(`tools[${index}].name: expected text, got nothing`);
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
  if (!Array.isArray(turns)) throw new DataError(`${field}: expected a list, got ${kindOf(turns)}`);
  const messages = turns.map((turn: Fields, index): Message => {
    if (turn?.["role"] !== undefined) return toMessages([turn], field)[0]!;
    const role = shareGptRoles[String(turn?.["from"])];
    if (!role) {
      const known = Object.keys(shareGptRoles).join(", ");
      throw new DataError(`${field}[${index}].from: unknown role; expected one of ${known}`);
    }
    return { role, content: text(turn, "value", `${field}[${index}].`) };
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

function text(row: Fields, field: string, prefix = ""): string {
  const value = row[field];
  if (typeof value === "string") return value;
  throw new DataError(`${prefix}${field}: expected text, got ${kindOf(value)}`);
}

function kindOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
