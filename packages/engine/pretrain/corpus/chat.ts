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

/** A conversation as the model reads it. */
export function renderMessages(messages: readonly Message[]): string {
  return messages
    .map(({ role, content }) => `${marks.turnStart}${role}\n${content}${marks.turnEnd}\n`)
    .join("");
}
