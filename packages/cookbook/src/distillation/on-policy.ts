import type { SamplingClient } from "tinker-ts";
import type { Message, Renderer } from "../renderers/index.js";
import {
  groupOf,
  messageEnvironment,
  penalizeTeacherDistance,
  scoreData,
  type DataAdjuster,
  type EnvironmentGroup,
  type PenaltyOptions,
} from "../rl/index.js";

/** How a student follows a teacher. */
export interface TeacherOptions extends Partial<PenaltyOptions> {
  /**
   * Strength.
   * @default 1
   */
  readonly coefficient?: number;
}

/**
 * Makes a teacher's opinion the whole of what is learned: the student samples, and every token is worth as
 * much as it was more probable to the teacher than to the student. This is the gradient of KL(student, teacher)
 * at the places the student goes to. Both must share tokenizer and chat format. Goes into `adjusters` of the
 * reinforcement loop, with groups whose rewards are all 0 (`promptGroup`); the metric is `teacher_kl`.
 */
export function teacherDistance(
  teacher: SamplingClient,
  options: TeacherOptions = {},
): DataAdjuster {
  return async (data, _groups, { signal }) => {
    const score = (sequence: Parameters<SamplingClient["computeLogprobs"]>[0]) =>
      teacher.computeLogprobs(sequence, signal ? { signal } : {});
    const teachers = await scoreData(data, score, { signal });
    return penalizeTeacherDistance(data, teachers, { coefficient: 1, ...options });
  };
}

/** How a prompt is given to the student. */
export interface PromptGroupOptions {
  /** The model's chat format. */
  readonly renderer: Renderer;
  /** Answers per prompt. */
  readonly size: number;
  /** Names for metrics, for instance the data set. */
  readonly tags?: readonly string[] | undefined;
}

/** Answers to one prompt that earn nothing by themselves. */
export function promptGroup(
  prompt: string | readonly Message[],
  { renderer, size, tags }: PromptGroupOptions,
): EnvironmentGroup {
  const messages: readonly Message[] =
    typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;
  const make = () =>
    messageEnvironment(
      { start: () => messages, reply: () => ({ reward: 0 }) },
      // An answer that was cut off or cannot be read is scored by the teacher like any other.
      { renderer, overflowReward: 0, parseErrors: { reward: 0 } },
    );
  return groupOf({ size, tags, make });
}
