import type { ChatTemplate, Tokenizer } from "@tinker-ts/hub";
import type { PromptEncoder, TextSource } from "../../decoding/prompt-encoder.js";
import { invalid, OpenAiError } from "../openai-error.js";
import type { ChatRequest } from "../request/chat-request.js";
import type { ThinkingMarks } from "../../structure/answer-grammar.js";

/** A conversation as the model reads it. */
export interface ChatPrompt {
  readonly tokens: Int32Array;
  readonly text: string;
  /** Whether it ends inside the model's thoughts. */
  readonly startsThinking: boolean;
}

/** Renders the messages of a request with the model's own template. */
export async function chatPrompt(
  prompts: PromptEncoder,
  owner: string,
  text: TextSource,
  request: ChatRequest,
  marks: ThinkingMarks | null,
): Promise<ChatPrompt> {
  const { messages, tools, choice, variables, continuesFinalMessage } = request;
  const isOffered = tools.length > 0 && choice !== "none";
  const options = {
    addGenerationPrompt: request.addsGenerationPrompt,
    variables,
    ...(isOffered ? { tools: tools.map(({ json }) => json) } : {}),
  };
  const chat = { messages, options, continuesFinalMessage };
  const encoded = await prompts.encodeChat(owner, text, chat);
  if ("problem" in encoded) throw invalid(encoded.field, encoded.problem);
  return { ...encoded, startsThinking: endsInThoughts(encoded.text, request, marks) };
}

/** The template that conversations are rendered with; a model without one is refused, never guessed for. */
export async function templateOf(tokenizer: Tokenizer, model: string): Promise<ChatTemplate> {
  if (tokenizer.chatTemplates.size > 0) return tokenizer.chatTemplate();
  throw new OpenAiError(
    400,
    `the model ${model} has no chat template; write the prompt yourself and call /v1/completions`,
    { param: "model", code: "invalid_value" },
  );
}

function endsInThoughts(text: string, request: ChatRequest, marks: ThinkingMarks | null): boolean {
  if (marks === null) return false;
  if (!request.continuesFinalMessage) return text.trimEnd().endsWith(marks.open);
  const last = text.slice(-String(request.messages.at(-1)?.content).length - marks.open.length - 2);
  return last.lastIndexOf(marks.open) > last.lastIndexOf(marks.close);
}
