import type { Message, Termination } from "../renderers/index.js";

/** Something to ask a model, and what is wanted. */
export interface EvalExample {
  /** Identifies the example in files. @default made from the question */
  readonly id?: string | undefined;
  /** The conversation up to where the model answers. */
  readonly messages: readonly Message[];
  /** What is wanted; graders say in which form. */
  readonly answer?: unknown;
  /** Answers to choose from. */
  readonly choices?: readonly string[] | undefined;
}

/** An answer of a model. */
export interface Answer {
  /** The visible text, without reasoning and without special tokens. */
  readonly text: string;
  readonly message: Message;
  readonly termination: Termination;
}

/** How good an answer is. */
export interface Grade {
  /** Above 0 is right. */
  readonly reward: number;
  /** Numbers that are averaged over examples. */
  readonly metrics?: Readonly<Record<string, number>> | undefined;
  /** For people who look at one example. */
  readonly logs?: Readonly<Record<string, string | number>> | undefined;
}

/** Judges an answer to an example. */
export type Grader = (
  answer: Answer,
  example: EvalExample,
  signal?: AbortSignal,
) => Grade | Promise<Grade>;

/** Questions with a way to judge the answers. */
export interface EvalTask {
  readonly name: string;
  readonly examples: readonly EvalExample[];
  /**
   * How answers are judged; `choice` asks for no answer but compares how probable the `choices` are.
   */
  readonly grader: Grader | "choice";
  /** Stands before every conversation. */
  readonly system?: string | undefined;
}

/** A task from conversations; the last message of each is the expected answer. */
export function taskFromConversations(
  name: string,
  conversations: readonly {
    readonly messages: readonly Message[];
    readonly choices?: readonly string[] | undefined;
  }[],
  grader: EvalTask["grader"],
): EvalTask {
  return {
    name,
    grader,
    examples: conversations.map(({ messages, choices }) => ({
      messages: messages.slice(0, -1),
      answer: messages.at(-1)!.content,
      choices,
    })),
  };
}
