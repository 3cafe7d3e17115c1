import { ArgumentError, ModelInput, type SamplingClient } from "tinker-ts";
import type { TeacherTopK } from "./soft-targets.js";

/** How long a question may take. */
export interface AskOptions {
  /** Gives the question up. */
  readonly signal?: AbortSignal | undefined;
}

/** A model that knows better; it must share the student's tokenizer. */
export interface Teacher {
  /** The log-probability of every token of a sequence, the first missing. */
  logprobs(sequence: ModelInput, options?: AskOptions): Promise<readonly (number | null)[]>;
  /** The `k` most probable tokens at every place of a sequence, the first missing. */
  topLogprobs(sequence: ModelInput, k: number, options?: AskOptions): Promise<TeacherTopK>;
}

/** A sampling client as a teacher: a base model, or weights that were trained. */
export function samplingTeacher(client: SamplingClient): Teacher {
  return {
    logprobs: (sequence, { signal } = {}) =>
      Promise.resolve(client.computeLogprobs(sequence, signal ? { signal } : {})),
    async topLogprobs(sequence, k, { signal } = {}) {
      const { topkPromptLogprobs } = await client.sample({
        prompt: sequence,
        samplingParams: { maxTokens: 1 },
        includePromptLogprobs: true,
        topkPromptLogprobs: k,
        ...(signal && { signal }),
      });
      if (topkPromptLogprobs) return topkPromptLogprobs;
      throw new ArgumentError("teacher", "its server returned no most probable tokens");
    },
  };
}

/** A teacher, given as one or as a client to sample from. */
export function toTeacher(given: Teacher | SamplingClient, field = "teacher"): Teacher {
  const { computeLogprobs, logprobs } = (given ?? {}) as Partial<SamplingClient & Teacher>;
  if (typeof computeLogprobs === "function") return samplingTeacher(given as SamplingClient);
  if (typeof logprobs === "function") return given as Teacher;
  throw new ArgumentError(
    field,
    "must be a sampling client (await service.createSamplingClient(...)) or an object with logprobs()",
  );
}
