import type { ModelConfig } from "../files/model-config.js";
import { expectedTensors } from "../files/tensor-names.js";
import type { WeightSource } from "../files/weight-source.js";
import { RandomStream } from "../util/random.js";

/** Standard deviation of initial matrices, as in GPT-2 and most models since. */
const deviation = 0.02;

/**
 * Weights of a new model, fixed by the seed: norms multiply by one, biases are zero, matrices normal;
 * those that write to the residual stream are smaller the more layers there are.
 */
export function initialWeights(config: ModelConfig, seed: number): WeightSource {
  const shapes = expectedTensors(config);
  const tensors = new Map(
    [...shapes].map(([name, shape]) => [name, { name, dtype: "F32" as const, shape }]),
  );
  return {
    tensors,
    read: (name) => {
      const shape = shapes.get(name) ?? [];
      const length = shape.reduce((product, dim) => product * dim, 1);
      return Promise.resolve(initialValues(config, name, length, seed));
    },
    close: () => Promise.resolve(),
  };
}

function initialValues(
  config: ModelConfig,
  name: string,
  length: number,
  seed: number,
): Float32Array {
  if (name.endsWith("norm.weight")) {
    return new Float32Array(length).fill(config.normsPlusOne === true ? 0 : 1);
  }
  if (name.endsWith(".bias")) return new Float32Array(length);
  const residual = /(o_proj|down_proj)\.weight$/.test(name);
  const scale = residual ? deviation / Math.sqrt(2 * config.layers) : deviation;
  const random = new RandomStream(seed, ...Buffer.from(name));
  const values = new Float32Array(length);
  for (let i = 0; i < length; i++) values[i] = scale * random.nextNormal();
  return values;
}
