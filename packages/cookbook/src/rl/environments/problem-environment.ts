import { asMessages, textOf, type Message } from "../../renderers/index.js";
import { rewardOf } from "../reward.js";
import type { Environment, EnvironmentGroup } from "../types.js";
import { messageEnvironment, type MessageEnvironmentOptions } from "./message-environment.js";
import { closeQuietly } from "../rollout.js";

/** A question with an answer that can be graded. */
export interface Problem {
  /** The question, or the messages that lead to it. */
  readonly prompt: string | readonly Message[];
  /** True or false, or a number; other values are errors. */
  grade(answer: string): boolean | number | Promise<boolean | number>;
  /** Whether an answer has the right form. @default always */
  hasFormat?(answer: string): boolean;
  /** Shown beside the answer. */
  readonly reference?: string | undefined;
}

/** How problems are posed. */
export interface ProblemOptions extends MessageEnvironmentOptions {
  /** What a wrong form costs; the right one earns nothing. @default 0.1 */
  readonly formatCoefficient?: number | undefined;
  /** Whether only the format's own end of a message counts as a right form. @default true */
  readonly needsStopSequence?: boolean | undefined;
}

/** One question, one answer: reward = correct - coefficient * (1 - format). */
export function problemEnvironment(problem: Problem, options: ProblemOptions): Environment {
  const { formatCoefficient = 0.1, needsStopSequence = true } = options;
  const question = asMessages(problem.prompt);
  const conversation = {
    start: () => question,
    async reply(message: Message, { termination }: { termination: string }) {
      const answer = textOf(message);
      const ended = !needsStopSequence || termination === "stop_sequence";
      const format = Number(ended && (problem.hasFormat?.(answer) ?? true));
      const correct = rewardOf(await problem.grade(answer));
      return {
        reward: correct - formatCoefficient * (1 - format),
        metrics: { format, correct },
        logs: {
          answer,
          ...(problem.reference === undefined ? {} : { reference: problem.reference }),
        },
      };
    },
  };
  return messageEnvironment(conversation, options);
}

/** Tries at one problem. */
export function problemGroup(
  problem: Problem,
  options: ProblemOptions & {
    /** Tries. */
    readonly size: number;
    /** Names for metrics, for instance the data set. */
    readonly tags?: readonly string[] | undefined;
  },
): EnvironmentGroup {
  const { size, tags } = options;
  return groupOf({
    size,
    tags,
    sharesPrompt: true,
    make: () => problemEnvironment(problem, options),
  });
}

/** How a group of like episodes is made. */
export interface GroupOfOptions extends Pick<
  EnvironmentGroup,
  "tags" | "rewards" | "sharesPrompt"
> {
  /** Episodes in the group. */
  readonly size: number;
  /** Makes one of them. */
  readonly make: (index: number) => Environment;
}

/** A group of episodes that know nothing of each other, for instance tries at one problem. */
export function groupOf({ size, make, ...rest }: GroupOfOptions): EnvironmentGroup {
  return {
    ...rest,
    environments: () => makeAll(size, make),
    replace: make,
  };
}

/** All or none: those that were made before one could not be made are closed. */
async function makeAll(
  size: number,
  make: (index: number) => Environment,
): Promise<readonly Environment[]> {
  const made: Environment[] = [];
  try {
    while (made.length < size) made.push(make(made.length));
    return made;
  } catch (error) {
    await Promise.all(made.map((environment) => closeQuietly(environment, error)));
    throw error;
  }
}
