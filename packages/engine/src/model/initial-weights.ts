import { expectedTensors, type WeightSource } from "@tinker-ts/hub/weights";
import type { ModelConfig } from "./model-config.js";
import { RandomStream } from "../util/random.js";

/** Standard deviation of initial matrices, as in GPT-2 and most models since. */
const deviation = 0.02;

/**
 * Weights of a new model, fixed by the seed: norms multiply by one, biases are zero, matrices normal;
 * those that write to the residual stream shrink with the number of layers.
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
  // Norms inside a mixer multiply by their weight in every family.
  const isInner = /\.(linear_attn|mamba)\.norm\.weight$/.test(name);
  if (name.endsWith("norm.weight")) {
    return new Float32Array(length).fill(config.normsPlusOne === true && !isInner ? 0 : 1);
  }
  if (/\.(dt_bias|D)$/.test(name)) return new Float32Array(length).fill(1);
  if (name.endsWith(".A_log")) return Float32Array.from({ length }, (_, i) => Math.log(1 + i));
  if (name.endsWith(".bias")) return new Float32Array(length);
  const residual = /(o_proj|down_proj|out_proj|output_linear|w2)\.weight$/.test(name);
  const scale = residual ? deviation / Math.sqrt(2 * config.layers) : deviation;
  const random = new RandomStream(seed, ...Buffer.from(name));
  const values = new Float32Array(length);
  for (let i = 0; i < length; i++) values[i] = scale * random.nextNormal();
  return values;
}
