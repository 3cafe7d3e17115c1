import { pythonStrip } from "@tinker-ts/hub";
import { markupText, type Markup } from "./markup.js";
import type { Message, ToolSpec } from "./message.js";

// A declaration quotes the marks of calls, which must be tokens there although the declaration is part of an
// ordinary message. So it is kept on the message under a symbol, which cannot come from a file.

const declared = Symbol("declaration");

interface Declaration {
  readonly tools?: readonly ToolSpec[];
  /** The content as markup, valid as long as the content equals its text. */
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

/** A system message that is a declaration with marks in it. */
export function declaringMessage(markup: Markup): Message {
  const message: Message = { role: "system", content: markupText(markup) };
  return { ...message, [declared]: { markup } } as DeclaringMessage;
}

/** A message with other content, which is still a declaration. */
export function withMarkup(message: Message, markup: Markup): Message {
  return { ...message, ...declaringMessage(markup), role: message.role };
}

/** The content of a message as markup, if a renderer has written it and it has not been changed since. */
export function declarationMarkup(message: Message): Markup | undefined {
  const markup = (message as DeclaringMessage)[declared]?.markup;
  return markup && markupText(markup) === message.content ? markup : undefined;
}

/** Markup without the blanks at its ends. */
export function trimMarkup(markup: Markup): Markup {
  return markup.map((atom, index) => {
    if (typeof atom !== "string") return atom;
    const start = index === 0 ? pythonStrip(atom, "lstrip") : atom;
    return index === markup.length - 1 ? pythonStrip(start, "rstrip") : start;
  });
}
