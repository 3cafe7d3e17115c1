export type { Attempt, Turn } from "./ask.js";
export { inParallel, untilAborted } from "./in-parallel.js";
export { evaluate, type EvalProgress, type EvaluateOptions } from "./evaluate.js";
export { runEvaluators, type EvaluationContext, type Evaluator } from "./evaluator.js";
export {
  exactMatch,
  includesMatch,
  jsonSchemaMatch,
  modelJudge,
  numericMatch,
  regexMatch,
  type JudgeOptions,
} from "./graders.js";
export { shareInterval } from "./interval.js";
export { nllEvaluator, scoreData, type NllEvaluatorOptions } from "./nll-evaluator.js";
export { passAtK, passAtKValues } from "./pass-at-k.js";
export { isRight, toResultLine, type EvalResult } from "./result.js";
export {
  exactMatchEvaluator,
  samplingEvaluator,
  type SamplingEvaluatorOptions,
} from "./sampling-evaluator.js";
export {
  taskFromConversations,
  type Answer,
  type EvalExample,
  type EvalTask,
  type Grade,
  type Grader,
} from "./task.js";
