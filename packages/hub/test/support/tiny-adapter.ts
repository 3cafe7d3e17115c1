import { targetsOfFlags, type LoraFlags } from "../../src/weights/lora-modules.js";
import type { ModelConfig } from "../../src/weights/model-config.js";
import {
  adapterTensorShapes,
  loraTargetsOf,
  type LoraAdapter,
} from "../../src/weights/peft/adapter.js";
import { repeatableValues } from "./tiny-model.js";

/** An adapter with repeatable values on every matrix that the flags cover. */
export function tinyAdapter(
  config: ModelConfig,
  flags: LoraFlags = { trainAttn: true, trainMlp: true, trainUnembed: true },
): LoraAdapter {
  const rank = 3;
  const shapes = adapterTensorShapes(config, targetsOfFlags(flags), rank);
  const tensors = new Map(
    [...shapes].map(([name, shape]) => {
      const data = repeatableValues(
        name,
        shape.reduce((a, b) => a * b, 1),
      );
      return [name, { shape, data }];
    }),
  );
  const targets = loraTargetsOf(tensors);
  return { rank, alpha: 32, targets, ...flags, seed: 7, baseModel: "tiny/llama", tensors };
}
