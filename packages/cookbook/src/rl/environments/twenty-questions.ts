import { textOf, type Message } from "../../renderers/index.js";
import type { MessageCompleter } from "../message-completer.js";
import type { StepContext } from "../types.js";
import type { Conversation } from "./message-environment.js";

/** A word to find by questions. */
export interface TwentyQuestionsOptions {
  /** The word. */
  readonly word: string;
  /** Answers a question; it sees that question alone. */
  readonly answerer: (question: string, context: StepContext) => string | Promise<string>;
  /** Questions. @default 20 */
  readonly maxQuestions?: number | undefined;
  /** The first message to the policy. @default the rules of the game */
  readonly rules?: string | undefined;
}

const rulesOfTheGame =
  "I think of a thing. Ask me questions that can be answered by yes or no, one at a time. When you know it, ask: Is it a WORD?";

/** Finding a word by questions to another model or program; the word in a question is worth 1, not to find it 0. */
export function twentyQuestions(options: TwentyQuestionsOptions): Conversation {
  const { word, answerer, maxQuestions = 20, rules = rulesOfTheGame } = options;
  const isNamed = new RegExp(`\\b${word.replace(/[^\w\s]/g, String.raw`\$&`)}\\b`, "i");
  let questions = 0;
  return {
    start: () => [{ role: "user", content: rules }],
    async reply(message, _response, context) {
      const question = textOf(message);
      questions++;
      const found = isNamed.test(question);
      const metrics = { found: Number(found), questions };
      if (found) return { reward: 1, metrics };
      if (questions >= maxQuestions) return { reward: 0, stopReason: "max_turns", metrics };
      const answer = await answerer(question, context);
      return { reward: 0, messages: [{ role: "user", content: answer }] };
    },
  };
}

/** Lets a model answer the questions about a word. */
export function modelAnswerer(
  complete: MessageCompleter,
  word: string,
): TwentyQuestionsOptions["answerer"] {
  return async (question, { signal }) => {
    const messages: Message[] = [
      {
        role: "system",
        content: `You think of this thing: ${word}. Answer the question with yes or no.`,
      },
      { role: "user", content: question },
    ];
    const { message } = await complete(messages, { signal });
    return textOf(message);
  };
}
