import type { Passage } from "./passage.js";

/** One message of a conversation. */
export interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** Marks that are tokens of their own. */
export const marks = {
  turnStart: "<|im_start|>",
  turnEnd: "<|im_end|>",
  documentEnd: "<|endoftext|>",
} as const;

/** The same layout as a template that any tokenizer library renders. */
export const chatTemplate =
  "{%- for message in messages -%}" +
  `{{- '${marks.turnStart}' + message['role'] + '\\n' + message['content'] + '${marks.turnEnd}\\n' -}}` +
  "{%- endfor -%}" +
  "{%- if add_generation_prompt -%}" +
  `{{- '${marks.turnStart}assistant\\n' -}}` +
  "{%- endif -%}";

/** A conversation as the model reads it: the answers are taught. */
export function renderMessages(messages: readonly Message[]): Passage[] {
  return messages.flatMap(({ role, content }) => {
    const head = `${marks.turnStart}${role}\n`;
    const body = `${content}${marks.turnEnd}`;
    return [
      { text: head, taught: false },
      { text: body, taught: role === "assistant" },
      { text: "\n", taught: false },
    ];
  });
}
