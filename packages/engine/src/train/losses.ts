import {
  exp,
  maximum,
  minimum,
  multiply,
  negate,
  scale,
  stopGradient,
  subtract,
} from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";

/** Names of the built-in losses. */
export type LossName = "cross_entropy" | "importance_sampling" | "ppo" | "cispo" | "dro";

/** Tensors by name; every one has one entry per target. */
export type LossTensors = Readonly<Record<string, Tensor>>;

/**
 * A loss, written in the graph language and differentiated by it.
 *
 * Every loss is a plain sum over targets. `perTarget` gives the terms of that sum from the current
 * log-probabilities and the caller's inputs and settings.
 */
export interface Loss {
  /** Float inputs besides `target_tokens`; all have the shape of the targets. */
  readonly inputs: readonly string[];
  /** Defaults of inputs that a datum may leave out; the others are required. */
  readonly inputDefaults?: Readonly<Record<string, number>>;
  /** Settings and their defaults. */
  readonly settings: Readonly<Record<string, number>>;
  /** The input with zeros for targets without gradient; absent if every target has one. */
  readonly gate?: string;
  /** Whether several targets per position are supported. */
  readonly manyTargets: boolean;
  perTarget(logprobs: Tensor, inputs: LossTensors, settings: LossTensors): Tensor;
}

/** The built-in losses by name. */
export const losses: Readonly<Record<LossName, Loss>> = {
  /** -logprob * weight */
  cross_entropy: {
    inputs: ["weights"],
    inputDefaults: { weights: 1 },
    settings: {},
    gate: "weights",
    manyTargets: true,
    perTarget: (logprobs, inputs) => negate(multiply(logprobs, named(inputs, "weights"))),
  },

  /** -ratio * advantage, where ratio = exp(logprob - sampler's logprob) */
  importance_sampling: {
    inputs: ["logprobs", "advantages"],
    settings: {},
    gate: "advantages",
    manyTargets: false,
    perTarget: (logprobs, inputs) =>
      negate(multiply(ratio(logprobs, inputs), named(inputs, "advantages"))),
  },

  /** -min(ratio * advantage, clip(ratio) * advantage) */
  ppo: {
    inputs: ["logprobs", "advantages"],
    settings: { clip_low_threshold: 0.8, clip_high_threshold: 1.2 },
    gate: "advantages",
    manyTargets: false,
    perTarget: (logprobs, inputs, settings) => {
      const advantages = named(inputs, "advantages");
      const free = ratio(logprobs, inputs);
      const bound = multiply(clip(free, settings), advantages);
      return negate(minimum(multiply(free, advantages), bound));
    },
  },

  /**
   * -stop(clip(ratio)) * logprob * advantage. The defaults are those of the current documentation: no
   * lower bound, and an upper bound that only tames outliers.
   */
  cispo: {
    inputs: ["logprobs", "advantages"],
    settings: { clip_low_threshold: 0, clip_high_threshold: 4 },
    gate: "advantages",
    manyTargets: false,
    perTarget: (logprobs, inputs, settings) => {
      const coefficient = stopGradient(clip(ratio(logprobs, inputs), settings));
      return negate(multiply(multiply(coefficient, logprobs), named(inputs, "advantages")));
    },
  },

  /**
   * -(logprob * advantage - beta / 2 * (logprob - sampler's logprob)^2). The quadratic term acts where
   * the advantage is zero, too, so no target is without gradient. The default beta is the documented
   * example.
   */
  dro: {
    inputs: ["logprobs", "advantages"],
    settings: { beta: 0.05 },
    manyTargets: false,
    perTarget: (logprobs, inputs, settings) => {
      const drift = subtract(logprobs, named(inputs, "logprobs"));
      const penalty = multiply(scale(named(settings, "beta"), 0.5), multiply(drift, drift));
      return subtract(penalty, multiply(logprobs, named(inputs, "advantages")));
    },
  },
};

function ratio(logprobs: Tensor, inputs: LossTensors): Tensor {
  return exp(subtract(logprobs, named(inputs, "logprobs")));
}

/** Bounds on the ratio itself; a ratio on a bound keeps its gradient. */
function clip(value: Tensor, settings: LossTensors): Tensor {
  const raised = maximum(value, named(settings, "clip_low_threshold"));
  return minimum(raised, named(settings, "clip_high_threshold"));
}

function named(tensors: LossTensors, name: string): Tensor {
  const tensor = tensors[name];
  if (tensor === undefined) throw new Error(`the loss has no tensor "${name}"`);
  return tensor;
}
