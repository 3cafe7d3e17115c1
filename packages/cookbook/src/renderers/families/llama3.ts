import type { ChatFormat } from "../chat-format.js";
import { onlyText } from "../check-messages.js";
import { markupOf } from "../markup.js";

const marks = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"];
const m = markupOf(marks);

/**
 * Llama 3 Instruct. Unlike the model's own template it adds no knowledge date to the system message, and it
 * has no functions: a call would be bare JSON, which is indistinguishable from an answer in JSON.
 */
export const llama3: ChatFormat = {
  name: "llama3",
  marks,
  requiredMarks: marks,
  begin: { mark: "<|begin_of_text|>" },
  stops: ["<|eot_id|>"],
  extension: "always",
  renderMessage: (message) => ({
    header: m`<|start_header_id|>${message.role}<|end_header_id|>\n\n`,
    output: [m`${onlyText(message)}<|eot_id|>`],
  }),
  generationSuffix: (role) => m`<|start_header_id|>${role}<|end_header_id|>\n\n`,
  reader: { read: (text, signs) => ({ role: "assistant", content: signs.spell(text) }) },
  openAI: { thinking: "inline", arguments: "text" },
};
