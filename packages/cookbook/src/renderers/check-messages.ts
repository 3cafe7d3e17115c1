import { ArgumentError } from "tinker-ts";
import { parseJson, type JsonValue } from "./json-text.js";
import type { Message, ToolCall } from "./message.js";
import type { TrainOnWhat } from "./train-on-what.js";

/** Names that are unambiguous in a header. */
const namePattern = /^[\p{L}\p{N}_.-]{1,128}$/u;

/** Checks the shape of messages, as they may come from files; names the message and the field. */
export function checkMessages(messages: readonly Message[], roles?: readonly string[]): void {
  if (!Array.isArray(messages)) throw new ArgumentError("messages", "must be a list of messages");
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`;
    if (typeof message !== "object" || message === null) {
      throw new ArgumentError(at, "must be a message with a role and a content");
    }
    checkRole(message.role, `${at}.role`, roles);
    checkContent(message.content, `${at}.content`);
    for (const [place, call] of (message.toolCalls ?? []).entries()) {
      checkCall(call, `${at}.toolCalls[${place}]`);
    }
    if (message.name !== undefined) checkName(message.name, `${at}.name`);
  }
}

/** Checks a role: it becomes part of a header. */
export function checkRole(role: unknown, field: string, roles?: readonly string[]): void {
  if (typeof role !== "string" || !/^[A-Za-z_]{1,32}$/.test(role)) {
    throw new ArgumentError(field, "must be a word such as user, assistant, system or tool");
  }
  if (roles && !roles.includes(role)) {
    throw new ArgumentError(field, `"${role}" is not a role of this format: ${roles.join(", ")}`);
  }
}

/** Checks the name of a function: it becomes part of a header. */
export function checkName(name: unknown, field: string): void {
  if (typeof name === "string" && namePattern.test(name)) return;
  throw new ArgumentError(field, "must be a name of letters, digits, dots, dashes and underscores");
}

/** Checks that `trainable` is on every message, or on none. */
export function checkTrainable(messages: readonly Message[], trainOnWhat: TrainOnWhat): void {
  for (const [index, { trainable }] of messages.entries()) {
    const field = `messages[${index}].trainable`;
    if (trainOnWhat === "customized" && typeof trainable !== "boolean") {
      throw new ArgumentError(field, "must be true or false on every message to train customized");
    }
    if (trainOnWhat !== "customized" && trainable !== undefined) {
      throw new ArgumentError(field, `is for customized only, not for ${trainOnWhat}: remove it`);
    }
  }
}

/** The arguments of a call as an object. */
export function argumentsOf(call: ToolCall): ReadonlyMap<string, JsonValue> {
  const field = `arguments of ${call.function.name}`;
  if (call.function.arguments === "") return new Map();
  const value = argumentsJson(call);
  if (value instanceof Map) return value;
  throw new ArgumentError(field, "must be a JSON object");
}

/** The arguments of a call as JSON of any kind. */
export function argumentsJson(call: ToolCall): JsonValue {
  try {
    return parseJson(call.function.arguments);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ArgumentError(`arguments of ${call.function.name}`, `must be JSON: ${reason}`, {
      cause,
    });
  }
}

/** The content of a message that can only have text; throws for other parts and for several. */
export function onlyText(message: Message): string {
  const { content, role } = message;
  if (typeof content === "string") return content;
  const [part] = content;
  if (content.length === 1 && part?.type === "text") return part.text;
  throw new ArgumentError("content", `a ${role} message takes one text in this format`);
}

const fieldOfPart: Readonly<Record<string, string>> = {
  text: "text",
  thinking: "thinking",
  image: "image",
};

function checkContent(content: unknown, field: string): void {
  if (typeof content === "string") return;
  if (!Array.isArray(content)) throw new ArgumentError(field, "must be a text or a list of parts");
  for (const [index, part] of (content as Record<string, unknown>[]).entries()) {
    const at = `${field}[${index}]`;
    const type = typeof part === "object" && part !== null ? String(part["type"]) : "";
    const name = Object.hasOwn(fieldOfPart, type) ? fieldOfPart[type]! : undefined;
    if (name === undefined) {
      throw new ArgumentError(`${at}.type`, "must be text, thinking or image");
    }
    const isBytes = type === "image" && part[name] instanceof Uint8Array;
    if (typeof part[name] !== "string" && !isBytes) {
      throw new ArgumentError(`${at}.${name}`, "must be a text");
    }
  }
}

function checkCall(call: ToolCall, field: string): void {
  checkName(call?.function?.name, `${field}.function.name`);
  if (typeof call.function.arguments !== "string") {
    throw new ArgumentError(`${field}.function.arguments`, "must be JSON text");
  }
}
