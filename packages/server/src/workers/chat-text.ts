import type { ChatMessage, ChatTemplate, RenderChatOptions, RenderedChat } from "@tinker-ts/hub";

/** A conversation for a model's template. */
export interface ChatText {
  readonly messages: readonly ChatMessage[];
  readonly options: RenderChatOptions;
  /** Whether the model goes on with the last message. */
  readonly continuesFinalMessage: boolean;
}

/** A conversation as the model reads it, or what stands in the way. */
export type EncodedText =
  | { readonly tokens: Int32Array; readonly text: string }
  | { readonly field: string; readonly problem: string };

/** Stands behind the message that is to be continued while the template is rendered. */
const hereMark = "\ufdd3";

/** Renders a conversation with a template and encodes it. */
export function encodeChatText(template: ChatTemplate, chat: ChatText): EncodedText {
  const { messages, options, continuesFinalMessage } = chat;
  const last = messages.at(-1);
  const marked =
    continuesFinalMessage && last
      ? [...messages.slice(0, -1), { ...last, content: `${String(last.content)}${hereMark}` }]
      : messages;
  let rendered: RenderedChat;
  try {
    rendered = template.render(marked, options);
  } catch (error) {
    if (!(error instanceof Error && error.name === "HubError")) throw error;
    return { field: "messages", problem: error.message };
  }
  const whole = continuesFinalMessage ? cutAtMark(rendered) : rendered;
  if (whole) return { tokens: whole.encode(), text: whole.toString() };
  const problem = "is not supported by the template of this model";
  return { field: "continue_final_message", problem };
}

function cutAtMark(rendered: RenderedChat): RenderedChat | undefined {
  // The last one: a message may have the character for reasons of its own.
  let place = -1;
  for (let next = rendered.indexOfMark(hereMark); next >= 0;) {
    place = next;
    next = rendered.indexOfMark(hereMark, place + 1);
  }
  return place < 0 ? undefined : rendered.slice(0, place);
}
