import type { Markup } from "./markup.js";
import type { Message, ToolSpec } from "./message.js";

// A declaration quotes the marks of calls, and there they must be tokens, although it travels inside an
// ordinary message. So it is kept on the message under a symbol, which nobody can write in a file.

const declared = Symbol("declaration");

interface Declaration {
  readonly tools?: readonly ToolSpec[];
  /** The content as markup, valid for as long as the content is the text that it spells. */
  readonly markup?: Markup;
}

type DeclaringMessage = Message & { readonly [declared]?: Declaration };

/** A message with the functions that a chat template is to declare. */
export function withDeclaredTools(message: Message, tools: readonly ToolSpec[]): Message {
  return { ...message, [declared]: { tools } } as DeclaringMessage;
}

/** The functions that messages declare. */
export function declaredTools(messages: readonly Message[]): readonly ToolSpec[] | undefined {
  return messages.map((message) => (message as DeclaringMessage)[declared]?.tools).find(Boolean);
}

/** A message whose content is a declaration with marks in it. */
export function withMarkup(message: Message, markup: Markup): Message {
  return { ...message, [declared]: { markup } } as DeclaringMessage;
}

/** The content of a message as markup, where the renderer itself has written it. */
export function declarationMarkup(message: Message): Markup | undefined {
  return (message as DeclaringMessage)[declared]?.markup;
}
