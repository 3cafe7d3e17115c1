import type { ChatTemplate, RenderedChat, Tokenizer } from "@tinker-ts/hub";
import { invalid, OpenAiError } from "../openai-error.js";
import type { ChatRequest } from "../request/chat-request.js";
import type { ThinkingMarks } from "../sections/answer-format.js";

/** A conversation as the model reads it. */
export interface ChatPrompt {
  readonly tokens: Int32Array;
  readonly text: string;
  /** Whether it ends inside the model's thoughts. */
  readonly startsThinking: boolean;
}

/** Stands behind the message that is to be continued while the template is rendered. */
const hereMark = "\ufdd3";

/** Renders the messages of a request with the model's own template. */
export async function chatPrompt(
  tokenizer: Tokenizer,
  template: ChatTemplate,
  request: ChatRequest,
  marks: ThinkingMarks | null,
): Promise<ChatPrompt> {
  const { tools, choice, variables, continuesFinalMessage } = request;
  const isOffered = tools.length > 0 && choice !== "none";
  const options = {
    addGenerationPrompt: request.addsGenerationPrompt,
    variables,
    ...(isOffered ? { tools: tools.map(({ json }) => json) } : {}),
  };
  const last = request.messages.at(-1);
  const messages = continuesFinalMessage
    ? [...request.messages.slice(0, -1), { ...last!, content: `${last!.content}${hereMark}` }]
    : request.messages;
  const rendered = render(template, messages, options);
  const whole = continuesFinalMessage ? cutAtMark(rendered) : rendered;
  const text = whole.toString();
  return { tokens: whole.encode(), text, startsThinking: endsInThoughts(text, request, marks) };
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

function render(
  template: ChatTemplate,
  ...[messages, options]: Parameters<ChatTemplate["render"]>
): RenderedChat {
  try {
    return template.render(messages, options);
  } catch (error) {
    if (error instanceof Error && error.name === "HubError")
      throw invalid("messages", error.message);
    throw error;
  }
}

function cutAtMark(rendered: RenderedChat): RenderedChat {
  // The last one: a message may have the character for reasons of its own.
  let place = -1;
  for (let next = rendered.indexOfMark(hereMark); next >= 0;) {
    place = next;
    next = rendered.indexOfMark(hereMark, place + 1);
  }
  if (place >= 0) return rendered.slice(0, place);
  throw invalid("continue_final_message", "is not supported by the template of this model");
}

function endsInThoughts(text: string, request: ChatRequest, marks: ThinkingMarks | null): boolean {
  if (marks === null) return false;
  if (!request.continuesFinalMessage) return text.trimEnd().endsWith(marks.open);
  const last = text.slice(-String(request.messages.at(-1)?.content).length - marks.open.length - 2);
  return last.lastIndexOf(marks.open) > last.lastIndexOf(marks.close);
}
