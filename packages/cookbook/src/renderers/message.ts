/** Visible text. */
export interface TextPart {
  readonly type: "text";
  readonly text: string;
}

/** Reasoning, without the tags that a model writes around it. */
export interface ThinkingPart {
  readonly type: "thinking";
  readonly thinking: string;
}

/** A picture. */
export interface ImagePart {
  readonly type: "image";
  /** The bytes of a PNG or JPEG file, or a `data:` URI; `loadImages` turns addresses into these. */
  readonly image: Uint8Array | string;
}

/** One piece of a message. */
export type ContentPart = TextPart | ThinkingPart | ImagePart;

/** A call of a function, requested by the model. */
export interface ToolCall {
  /** Links a result to its call; null if the model's format has no ids. */
  readonly id: string | null;
  readonly function: {
    readonly name: string;
    /** The arguments as JSON text, as the model wrote them. */
    readonly arguments: string;
  };
}

/** A call of the model that could not be parsed. */
export interface UnparsedToolCall {
  /** The model's text, markers included. */
  readonly rawText: string;
  readonly error: string;
}

/** A function that a model may call. */
export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments; the order of its keys is the order in the prompt. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** One message of a conversation. */
export interface Message {
  /** `system`, `user`, `assistant`, `tool`; some families have more, such as `developer`. */
  readonly role: string;
  /** A text is the same as a list with one text part. */
  readonly content: string | readonly ContentPart[];
  /** The calls that an assistant message makes. */
  readonly toolCalls?: readonly ToolCall[];
  /** Calls that could not be parsed; never rendered. */
  readonly unparsedToolCalls?: readonly UnparsedToolCall[];
  /** Whether the message is trained; for `customized` only, where every message needs it. */
  readonly trainable?: boolean;
  /** On a tool result: the call that it answers. Set `name` too: families differ in which they need. */
  readonly toolCallId?: string;
  /** On a tool result: the function that was called. */
  readonly name?: string;
}

/** The parts of a content; a text is one part. */
export function contentParts(content: Message["content"]): readonly ContentPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** The visible text of a message, its parts joined without a separator. */
export function textOf({ content }: Pick<Message, "content">): string {
  return contentParts(content)
    .map((part) => (part.type === "text" ? part.text : ""))
    .join("");
}

/** Messages; a string becomes a message of the user, or of another role. */
export function asMessages(given: string | readonly Message[], role = "user"): readonly Message[] {
  return typeof given === "string" ? [{ role, content: given }] : given;
}

/** The reasoning of a message, its parts joined without a separator. */
export function thinkingOf({ content }: Pick<Message, "content">): string {
  return contentParts(content)
    .map((part) => (part.type === "thinking" ? part.thinking : ""))
    .join("");
}

/** Whether a message has reasoning parts; tags inside a text are text. */
export function hasThinking({ content }: Pick<Message, "content">): boolean {
  return contentParts(content).some(({ type }) => type === "thinking");
}

/** A message without its reasoning parts. */
export function withoutThinking(message: Message): Message {
  if (!hasThinking(message)) return message;
  return {
    ...message,
    content: contentParts(message.content).filter(({ type }) => type !== "thinking"),
  };
}

/**
 * Converts a think block at the start of a message's text, as in many data sets, to a reasoning
 * part. Renderers treat tags inside a text as text; this converts them to reasoning.
 */
export function splitThinking(message: Message): Message {
  if (message.role !== "assistant" || typeof message.content !== "string") return message;
  // The opening tag may be missing, where it was part of the prompt.
  const block = /^\s*(?:<think>)?((?:(?!<think>).)*?)<\/think>\n*/s.exec(message.content);
  if (!block) return message;
  const thinking = block[1]!.trim();
  const text = message.content.slice(block[0].length);
  return {
    ...message,
    content: [
      ...(thinking === "" ? [] : [{ type: "thinking", thinking } as const]),
      ...(text === "" ? [] : [{ type: "text", text } as const]),
    ],
  };
}
