import { invalid, unsupported } from "../openai-error.js";
import { Fields, isObject, type Json } from "./fields.js";

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
