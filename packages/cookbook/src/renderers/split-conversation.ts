import type { Extension } from "./chat-format.js";
import type { Message } from "./message.js";
import { RendererError } from "./renderer-error.js";
import type { SupervisedExample } from "./renderer.js";
import type { TrainOnWhat } from "./train-on-what.js";

/** Properties of a renderer that splitting depends on. */
export interface SplitRules {
  readonly name: string;
  readonly extension: Extension;
  readonly splitsByUserTurn: boolean;
  readonly turnStart: (messages: readonly Message[]) => number;
  readonly build: (messages: readonly Message[], trainOnWhat: TrainOnWhat) => SupervisedExample;
}

/**
 * Examples in which each trained message follows the prompt it would be sampled from.
 *
 * - A format that extends needs one example.
 * - One that rewrites earlier turns needs one per trained message, ending there.
 * - A format that keeps the reasoning of earlier turns extends if every turn has reasoning. It gets
 *   one example too, in which a turn without reasoning is trained in the form it has in history.
 */
export function splitConversation(
  rules: SplitRules,
  messages: readonly Message[],
  trainOnWhat: TrainOnWhat,
): SupervisedExample[] {
  if (rules.splitsByUserTurn) return splitByUserTurn(rules, messages, trainOnWhat);
  if (rules.extension !== "never") return [rules.build(messages, trainOnWhat)];
  const canSplit =
    trainOnWhat === "last_assistant_message" ||
    trainOnWhat === "last_assistant_turn" ||
    trainOnWhat === "all_assistant_messages";
  if (!canSplit) {
    throw new RendererError(
      `The format of "${rules.name}" rewrites earlier turns, so ${trainOnWhat} cannot be split into ` +
        "examples. Train assistant messages, or build one example with buildSupervisedExample.",
    );
  }
  return trainedIndices(rules, messages, trainOnWhat).map((index) =>
    rules.build(messages.slice(0, index + 1), "last_assistant_message"),
  );
}

function trainedIndices(
  rules: SplitRules,
  messages: readonly Message[],
  trainOnWhat: TrainOnWhat,
): number[] {
  const first = {
    last_assistant_message: messages.length - 1,
    last_assistant_turn: rules.turnStart(messages),
    all_assistant_messages: 0,
  }[trainOnWhat as string];
  return messages.flatMap(({ role }, index) =>
    role === "assistant" && index >= (first ?? 0) ? [index] : [],
  );
}

/** One example per message of the user, ending before the next. */
function splitByUserTurn(
  rules: SplitRules,
  messages: readonly Message[],
  trainOnWhat: TrainOnWhat,
): SupervisedExample[] {
  if (trainOnWhat === "last_assistant_message" || trainOnWhat === "last_assistant_turn") {
    return [rules.build(messages, trainOnWhat)];
  }
  const mode = trainOnWhat === "all_assistant_messages" ? "last_assistant_turn" : trainOnWhat;
  const ends = messages.flatMap(({ role }, index) => (role === "user" ? [index] : [])).slice(1);
  return [...ends, messages.length].map((end) => rules.build(messages.slice(0, end), mode));
}
