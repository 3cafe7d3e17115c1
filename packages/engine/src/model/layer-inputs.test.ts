import { expect, it } from "vitest";
import { parseModelConfig } from "@tinker-ts/hub/weights";
import { Graph } from "../graph/graph.js";
import type { Int8Precision } from "./precision.js";
import { declareLayerWeights, declareTrainedHead, declareTrainedLayer } from "./layer-inputs.js";

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

const kind = { window: null, rotation: "rope" } as const;
const int8 = { weights: "int8", activations: "int8" } as const;
const int16 = { weights: "int8", activations: "int16" } as const;

it.each<[Int8Precision, number]>([
  [{ ...int8, digitBits: 8 }, 1],
  [{ ...int8, digitBits: 7 }, 1],
  [{ ...int16, digitBits: 8 }, 2],
  [{ ...int16, digitBits: 7 }, 3],
  [{ ...int16, digitBits: 7, digits: 2 }, 2],
])("%o are %i digits, for gradients of the head two", (precision, digits) => {
  const computed = { ...config, precision };
  const format = { digits, bits: precision.digitBits };
  const { sites } = declareLayerWeights(new Graph(), computed, kind, { keys: ["gate"] });
  expect(sites("gate").weight).toMatchObject({ format, gradientFormat: format });
  const head = declareTrainedHead(new Graph(), computed);
  expect(head).toMatchObject({ format, gradientFormat: { ...format, digits: 2 } });
});

it("widens layer weights for training where values would take three digits", () => {
  const weightOf = (precision: Int8Precision) =>
    declareTrainedLayer(new Graph(), { ...config, precision }, kind, { keys: ["gate"] }).sites(
      "gate",
    ).weight;
  expect(weightOf({ ...int16, digitBits: 7 })).toMatchObject({ dtype: "float32" });
  expect(weightOf({ ...int16, digitBits: 8 })).toMatchObject({ format: { digits: 2 } });
  expect(weightOf({ ...int8, digitBits: 7 })).toMatchObject({ format: { digits: 1 } });
});
