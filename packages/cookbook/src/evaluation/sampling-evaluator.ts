import { evaluate, type EvaluateOptions } from "./evaluate.js";
import type { Evaluator } from "./evaluator.js";
import { exactMatch } from "./graders.js";
import { taskFromConversations, type EvalTask } from "./task.js";
import type { Message, Renderer } from "../renderers/index.js";

/** How a task is carried out while a model is trained. */
export type SamplingEvaluatorOptions = Omit<EvaluateOptions, "task" | "sampling" | "signal">;

/** Asks the model as it is: `eval/NAME/score`, `/num_correct`, `/num_examples`, `/num_errors` and the graders' metrics. */
export function samplingEvaluator(task: EvalTask, options: SamplingEvaluatorOptions): Evaluator {
  return {
    name: task.name,
    async evaluate({ sampler, signal }) {
      const result = await evaluate({ ...options, task, sampling: await sampler(), signal });
      const metrics: Record<string, number> = {
        score: result.score,
        num_correct: result.numCorrect,
        num_examples: result.numExamples,
        num_errors: result.numErrors,
        ...result.metrics,
      };
      return Object.fromEntries(
        Object.entries(metrics).map(([key, value]) => [`eval/${task.name}/${key}`, value]),
      );
    },
  };
}

/** The share of held-out conversations that the model completes word for word, as a task "exact". */
export function exactMatchEvaluator(
  conversations: readonly { readonly messages: readonly Message[] }[],
  options: SamplingEvaluatorOptions & { readonly renderer: Renderer; readonly name?: string },
): Evaluator {
  const { name = "exact", ...rest } = options;
  return samplingEvaluator(taskFromConversations(name, conversations, exactMatch()), rest);
}
