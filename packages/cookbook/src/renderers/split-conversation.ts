import type { Extension } from "./chat-format.js";
import type { Message } from "./message.js";
import { RendererError } from "./renderer-error.js";
import type { SupervisedExample } from "./renderer.js";
import type { TrainOnWhat } from "./train-on-what.js";

/** What splitting needs to know of a renderer. */
export interface SplitRules {
  readonly name: string;
  readonly extension: Extension;
  readonly splitsByUserTurn: boolean;
  readonly turnStart: (messages: readonly Message[]) => number;
  readonly build: (messages: readonly Message[], trainOnWhat: TrainOnWhat) => SupervisedExample;
}

/**
 * Examples in which each trained message stands behind the prompt it would be sampled from.
 *
 * - A format that always extends needs one example.
 * - One that never does needs one per trained message, ending there.
 * - In between, examples are joined where the longer begins with the shorter, token for token.
 */
export function splitConversation(
  rules: SplitRules,
  messages: readonly Message[],
  trainOnWhat: TrainOnWhat,
): SupervisedExample[] {
  if (rules.splitsByUserTurn) return splitByUserTurn(rules, messages, trainOnWhat);
  const canSplit =
    trainOnWhat === "last_assistant_message" ||
    trainOnWhat === "last_assistant_turn" ||
    trainOnWhat === "all_assistant_messages";
  if (rules.extension === "always" || (rules.extension === "sometimes" && !canSplit)) {
    return [rules.build(messages, trainOnWhat)];
  }
  if (!canSplit) {
    throw new RendererError(
      `The format of "${rules.name}" rewrites earlier turns, so ${trainOnWhat} cannot be split into ` +
        "examples. Train assistant messages, or build one example with buildSupervisedExample.",
    );
  }
  const examples = trainedIndices(rules, messages, trainOnWhat).map((index) =>
    rules.build(messages.slice(0, index + 1), "last_assistant_message"),
  );
  if (rules.extension === "never") return examples;
  const joined = joinExtensions(examples);
  return joined.length === 1 ? [rules.build(messages, trainOnWhat)] : joined;
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

function joinExtensions(examples: readonly SupervisedExample[]): SupervisedExample[] {
  const joined: SupervisedExample[] = [];
  for (const example of examples) {
    const before = joined.at(-1);
    if (!before || !beginsWith(example, before)) {
      joined.push(example);
      continue;
    }
    const weights = example.weights.slice();
    for (const [index, weight] of before.weights.entries()) weights[index] ||= weight;
    joined[joined.length - 1] = { input: example.input, weights };
  }
  return joined;
}

function beginsWith(longer: SupervisedExample, shorter: SupervisedExample): boolean {
  if (
    ![...longer.input.chunks, ...shorter.input.chunks].every(({ type }) => type === "encoded_text")
  )
    return false;
  const ids = longer.input.toInts();
  return shorter.input.toInts().every((id, index) => ids[index] === id);
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
