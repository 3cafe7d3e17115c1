import type { ChatFormat } from "../chat-format.js";
import { onlyText } from "../check-messages.js";
import { markupOf } from "../markup.js";

const m = markupOf([]);

/**
 * Plain text for base models: `User: ...`, `Assistant: ...`. It has no marks, so a text with `\n\nUser:` in it
 * is parsed as another turn; never use it with untrusted texts in conversations of several turns.
 */
export const roleColon: ChatFormat = {
  name: "role_colon",
  marks: [],
  requiredMarks: [],
  begin: "bos",
  stops: { text: "\n\nUser:" },
  extension: "always",
  renderMessage: (message) => ({
    header: m`${capitalize(message.role)}:`,
    output: [m` ${onlyText(message)}\n\n`],
    ...(message.role === "assistant" ? { stopOverlap: m`User:` } : {}),
  }),
  generationSuffix: (role) => m`${capitalize(role)}:`,
  reader: { read: (text) => ({ role: "assistant", content: text }) },
  openAI: { thinking: "inline", arguments: "text" },
};

function capitalize(role: string): string {
  return role.slice(0, 1).toUpperCase() + role.slice(1).toLowerCase();
}
