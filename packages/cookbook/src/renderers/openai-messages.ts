import { ArgumentError } from "tinker-ts";
import type { ChatFormat } from "./chat-format.js";
import {
  contentParts,
  splitThinking,
  thinkingOf,
  type ContentPart,
  type Message,
  type ToolCall,
} from "./message.js";

/** A message in the form of OpenAI-style services and chat templates. */
export type OpenAIMessage = Readonly<Record<string, unknown>>;

/** The OpenAI-style form of a message. */
export function toOpenAIMessage(
  message: Message,
  style: ChatFormat["openAI"] = { thinking: "field", arguments: "text" },
): Record<string, unknown> {
  const parts = contentParts(message.content);
  const result: Record<string, unknown> = { role: message.role };
  if (parts.some(({ type }) => type === "image")) {
    result["content"] = parts.filter(({ type }) => type !== "thinking").map(openAIPart);
  } else {
    result["content"] = parts
      .map((part) => {
        if (part.type === "text") return part.text;
        if (part.type === "image" || style.thinking === "field") return "";
        return `<think>${part.thinking}</think>`;
      })
      .join("");
  }
  const thinking = thinkingOf(message);
  if (style.thinking === "field" && parts.some(({ type }) => type === "thinking")) {
    result["reasoning_content"] = thinking;
  }
  if (message.toolCalls && message.toolCalls.length > 0) {
    result["tool_calls"] = message.toolCalls.map(({ id, function: called }) => ({
      type: "function",
      id,
      function: {
        name: called.name,
        arguments:
          style.arguments === "object"
            ? (JSON.parse(called.arguments || "{}") as unknown)
            : called.arguments,
      },
    }));
  }
  if (message.role === "tool") {
    if (message.toolCallId !== undefined) result["tool_call_id"] = message.toolCallId;
    if (message.name !== undefined) result["name"] = message.name;
  }
  return result;
}

/**
 * Messages from their OpenAI-style form: `reasoning_content`, `reasoning` and a think block in front of an
 * answer become reasoning, `image_url` pictures. Results get the names of functions from the calls that
 * they answer.
 */
export function fromOpenAIMessages(messages: readonly OpenAIMessage[]): Message[] {
  const nameOfCall = new Map<string, string>();
  return messages.map((message, index) => {
    const converted = fromOpenAIMessage(message, `messages[${index}]`);
    for (const { id, function: called } of converted.toolCalls ?? []) {
      if (id !== null) nameOfCall.set(id, called.name);
    }
    if (converted.role !== "tool" || converted.name !== undefined) return converted;
    const name = nameOfCall.get(converted.toolCallId ?? "");
    return name === undefined ? converted : { ...converted, name };
  });
}

function fromOpenAIMessage(message: OpenAIMessage, at: string): Message {
  if (typeof message !== "object" || message === null || typeof message["role"] !== "string") {
    throw new ArgumentError(`${at}.role`, "must be a text such as user or assistant");
  }
  const content = readContent(message["content"], `${at}.content`);
  const reasoning = message["reasoning_content"] ?? message["reasoning"];
  const isReasoned = typeof reasoning === "string" && reasoning !== "";
  const calls = readCalls(message["tool_calls"], `${at}.tool_calls`);
  const { tool_call_id: toolCallId, name } = message;
  return splitThinking({
    role: message["role"],
    content: isReasoned
      ? [
          { type: "thinking", thinking: reasoning },
          ...contentParts(content).filter((part) => part.type !== "text" || part.text !== ""),
        ]
      : content,
    ...(calls.length > 0 ? { toolCalls: calls } : {}),
    ...(typeof toolCallId === "string" ? { toolCallId } : {}),
    ...(typeof name === "string" ? { name } : {}),
  });
}

function readContent(content: unknown, field: string): Message["content"] {
  // A message with calls only may have none.
  if (content === null || content === undefined) return "";
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) throw new ArgumentError(field, "must be a text or a list of parts");
  return content.map((part: Record<string, unknown>, index): ContentPart => {
    const at = `${field}[${index}]`;
    const { type, text, thinking, image, image_url: address } = part;
    if (type === "text" && typeof text === "string") return { type, text };
    if (type === "thinking" && typeof thinking === "string") return { type, thinking };
    const picture = image ?? (isRecord(address) ? address["url"] : address);
    if (typeof picture === "string" || picture instanceof Uint8Array) {
      return { type: "image", image: picture };
    }
    throw new ArgumentError(at, "must be a part of type text, thinking, image or image_url");
  });
}

function readCalls(calls: unknown, field: string): ToolCall[] {
  if (calls === null || calls === undefined) return [];
  if (!Array.isArray(calls)) throw new ArgumentError(field, "must be a list of calls");
  return calls.map((call: Record<string, unknown>, index) => {
    const called = isRecord(call) ? (call["function"] ?? call) : undefined;
    if (!isRecord(called) || typeof called["name"] !== "string") {
      throw new ArgumentError(`${field}[${index}].function.name`, "must be a text");
    }
    const given = called["arguments"] ?? {};
    return {
      id: typeof call["id"] === "string" ? call["id"] : null,
      function: {
        name: called["name"],
        arguments: typeof given === "string" ? given : JSON.stringify(given),
      },
    };
  });
}

function openAIPart(part: ContentPart): unknown {
  if (part.type === "text") return { type: "text", text: part.text };
  if (part.type === "thinking") return { type: "text", text: part.thinking };
  const url = typeof part.image === "string" ? part.image : dataUri(part.image);
  return { type: "image_url", image_url: { url } };
}

function dataUri(bytes: Uint8Array): string {
  const format = bytes[0] === 0x89 ? "png" : "jpeg";
  return `data:image/${format};base64,${Buffer.from(bytes).toString("base64")}`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
