import { expect, it } from "vitest";
import { parseModelConfig } from "../files/model-config.js";
import type { Int8Precision } from "../files/precision.js";
import { Graph } from "../graph/graph.js";
import { declareTrainedHead, declareWeight } from "./layer-inputs.js";

const config = parseModelConfig({
  architectures: ["LlamaForCausalLM"],
  hidden_size: 128,
  intermediate_size: 256,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  vocab_size: 512,
  rms_norm_eps: 1e-5,
  max_position_embeddings: 64,
  tie_word_embeddings: true,
});

const int8 = { weights: "int8", activations: "int8" } as const;
const int16 = { weights: "int8", activations: "int16" } as const;

it.each<[Int8Precision, number, number]>([
  [{ ...int8, digitBits: 8 }, 1, 1],
  [{ ...int8, digitBits: 7 }, 1, 1],
  [{ ...int16, digitBits: 8 }, 2, 2],
  [{ ...int16, digitBits: 7 }, 3, 2],
  [{ ...int16, digitBits: 7, digits: 2 }, 2, 2],
])("%o are %i digits, and %i for gradients of layers", (precision, digits, ofGradients) => {
  const weight = declareWeight(new Graph(), { ...config, precision }, "gate", [256, 128]);
  const bits = precision.digitBits;
  expect(weight).toMatchObject({
    format: { digits, bits },
    gradientFormat: { digits: ofGradients, bits },
  });
  const head = declareTrainedHead(new Graph(), { ...config, precision });
  expect(head).toMatchObject({ format: { digits, bits }, gradientFormat: { digits: 2, bits } });
});
