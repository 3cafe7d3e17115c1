export { runEvaluators, type EvaluationContext, type Evaluator } from "./evaluator.js";
export { nllEvaluator, scoreData, type NllEvaluatorOptions } from "./nll-evaluator.js";
export { passAtK, passAtKValues } from "./pass-at-k.js";
