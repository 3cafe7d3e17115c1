import { EngineError } from "../errors.js";
import type { NamedTensors } from "../files/peft/adapter.js";
import type { WeightSource } from "../files/weight-source.js";

/** Weights that the caller holds in memory, checked against those that are expected. */
export function givenWeights(expected: WeightSource, tensors: NamedTensors): WeightSource {
  for (const [name, { shape }] of expected.tensors) {
    const given = tensors.get(name);
    if (given === undefined)
      throw new EngineError("missing_tensor", `tensors: "${name}" is missing.`);
    const length = shape.reduce((product, dim) => product * dim, 1);
    if (given.shape.join() !== shape.join() || given.data.length !== length) {
      throw new EngineError(
        "wrong_shape",
        `tensors: "${name}" has shape [${given.shape.join(", ")}] instead of [${shape.join(", ")}].`,
      );
    }
  }
  return {
    ...expected,
    read: (name) => {
      const tensor = tensors.get(name);
      if (tensor === undefined) throw new EngineError("missing_tensor", `"${name}" is missing.`);
      return Promise.resolve(tensor.data);
    },
  };
}
