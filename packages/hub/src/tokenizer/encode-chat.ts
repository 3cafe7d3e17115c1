import type {
  ChatMessage,
  ChatTemplate,
  RenderChatOptions,
  RenderedChat,
} from "./chat-template.js";

/** A conversation as tokens. */
export interface EncodedChat {
  /** The whole conversation as the chat template writes it. */
  readonly text: string;
  /** Its token ids; no text of a message becomes a special token. */
  readonly tokens: Int32Array;
  /**
   * For each token 1 in the assistant's turns (text and end-of-turn token), else 0: weights to
   * train on. Null when the template rewrites earlier turns so that the turns cannot be located.
   */
  readonly assistantMask: Uint8Array | null;
}

/** The range of an assistant's turn in a rendered conversation. */
interface Turn {
  readonly start: number;
  readonly end: number;
}

/** Renders and encodes a conversation and marks the assistant's tokens. */
export function encodeChat(
  template: ChatTemplate,
  marks: ReadonlySet<number>,
  messages: readonly ChatMessage[],
  options: RenderChatOptions,
): EncodedChat {
  const chat = template.render(messages, options);
  const tokens = chat.encode();
  const turns = findTurns(template, messages, options, chat);
  if (!turns) return { text: chat.toString(), tokens, assistantMask: null };
  const assistantMask = new Uint8Array(tokens.length);
  for (const turn of turns) {
    const start = commonLength(tokens, chat.slice(0, turn.start).encode());
    let end = commonLength(tokens, chat.slice(0, turn.end).encode());
    // Text after the end-of-turn token is not the assistant's.
    const mark = tokens.subarray(start, end).findLastIndex((token) => marks.has(token));
    if (mark >= 0) end = start + mark + 1;
    assistantMask.fill(1, start, end);
  }
  return { text: chat.toString(), tokens, assistantMask };
}

/**
 * Templates do not mark where a turn begins. But the rendering of the messages before it is a prefix of
 * the whole, and the opening of the turn follows; so is the rendering of the messages through it.
 */
function findTurns(
  template: ChatTemplate,
  messages: readonly ChatMessage[],
  options: RenderChatOptions,
  chat: RenderedChat,
): Turn[] | undefined {
  const turns: Turn[] = [];
  try {
    for (const [index, { role }] of messages.entries()) {
      if (role !== "assistant") continue;
      const part = (count: number, addGenerationPrompt: boolean) =>
        template.render(messages.slice(0, count), { ...options, addGenerationPrompt });
      const before = index === 0 ? undefined : part(index, false);
      const through = part(index + 1, false);
      if (before && chat.commonLength(before) < before.length) return undefined;
      if (chat.commonLength(through) < through.length) return undefined;
      // The opening may contain text that only a new answer gets, such as an empty thought.
      turns.push({ start: chat.commonLength(part(index, true)), end: through.length });
    }
  } catch {
    return undefined; // some templates refuse parts of a conversation
  }
  return turns;
}

function commonLength(a: Int32Array, b: Int32Array): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) if (a[index] !== b[index]) return index;
  return length;
}
