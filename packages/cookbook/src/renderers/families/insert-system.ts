import type { Message } from "../message.js";

/** A message that a format adds; it is never trained with `customized`. */
export function inserted(messages: readonly Message[], role: string, content: string): Message {
  const isFlagged = messages.some(({ trainable }) => trainable !== undefined);
  return { role, content, ...(isFlagged ? { trainable: false } : {}) };
}

/** Prepends a system message to a conversation without one. */
export function insertSystem(messages: readonly Message[], content: string): readonly Message[] {
  if (messages[0]?.role === "system") return messages;
  return [inserted(messages, "system", content), ...messages];
}
