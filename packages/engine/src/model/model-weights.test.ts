import { parseModelConfig } from "@tinker-ts/hub/weights";
import { expect, it } from "vitest";
import { initialWeights } from "./initial-weights.js";
import { loadModelWeights } from "./model-weights.js";

const granite = parseModelConfig({
  architectures: ["GraniteMoeHybridForCausalLM"],
  vocab_size: 30,
  hidden_size: 128,
  intermediate_size: 40,
  shared_intermediate_size: 40,
  num_hidden_layers: 1,
  num_attention_heads: 4,
  max_position_embeddings: 64,
  layer_types: ["mamba"],
  mamba_n_heads: 4,
  mamba_d_state: 8,
});

it("keeps the decay rows of an int8 matrix in 32 bits", async () => {
  const source = initialWeights(granite, 1);
  const stored = await source.read("model.layers.0.mamba.in_proj.weight");
  const precision = { weights: "int8", activations: "int16" } as const;
  const { layers } = await loadModelWeights({ ...granite, precision }, source);
  const [layer = {}] = layers;
  const heads = 4;
  expect(layer["mambaTime"]).toEqual(stored.slice(-heads * 128));
  expect(layer["mambaIn"]).toBeInstanceOf(Int8Array);
  expect(layer["mambaIn"]).toHaveLength(stored.length - heads * 128);
  const whole = await loadModelWeights(granite, source);
  expect(whole.layers[0]?.["mambaIn"]).toEqual(stored);
  expect(whole.layers[0]).not.toHaveProperty("mambaTime");
});
