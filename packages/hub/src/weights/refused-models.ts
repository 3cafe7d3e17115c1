import { isObject } from "../files/json.js";
import type { JsonFields } from "../files/json-fields.js";

const experts = "mixtures of experts are not supported yet";
const vision = "models with vision are not supported";
const latent = "multi-head latent attention is not supported; Qwen3.5 loads";
const gemma3 = "Gemma 3 (google/gemma-3-270m, gemma-3-1b-it) loads";

/** Known models that do not load, with alternatives; by the beginning of their class's name or `model_type`. */
const refusals: readonly (readonly [name: string, reason: string])[] = [
  ["Qwen3_5Moe", `${experts}; a dense Qwen3.5 (Qwen/Qwen3.5-0.8B to 27B) loads`],
  ["Qwen3Moe", `${experts}; a dense Qwen3 (Qwen/Qwen3-0.6B to 32B) loads`],
  ["Qwen2Moe", `${experts}; a dense Qwen2.5 loads`],
  ["Qwen3Next", `${experts}; a dense Qwen3.5 (Qwen/Qwen3.5-0.8B to 27B) loads`],
  ["Lfm2Moe", `${experts}; a dense LFM2 (LiquidAI/LFM2-350M to 2.6B) loads`],
  ["Olmoe", `${experts}; OLMo 2 and OLMo 3 load`],
  ["Llama4", `${experts}; Llama 3.2 and 3.3 load`],
  ["Mistral4", `${experts}; Mistral 7B and Ministral 3 load`],
  ["Mixtral", `${experts}; Mistral 7B and Ministral 3 load`],
  ["GraniteMoeFor", `${experts}; Granite 3 and 4 without experts load`],
  ["GraniteMoeShared", `${experts}; Granite 3 and 4 without experts load`],
  ["GptOss", `${experts}, nor are its MXFP4 weights; Qwen3.5 loads`],
  ["Gemma4", `Gemma 4 is not supported yet; ${gemma3}`],
  ["Gemma3n", `Gemma 3n is not supported; ${gemma3}`],
  [
    "Gemma3ForConditionalGeneration",
    `${vision}; google/gemma-3-270m and gemma-3-1b-it, of text alone, load`,
  ],
  ["NemotronH", "Nemotron-H and Nemotron 3 are not supported yet; Granite 4 H loads"],
  ["Glm4MoeLite", latent],
  ["Glm4Moe", `${experts}; a dense Qwen3.5 loads`],
  ["Glm4", "GLM-4 is not supported; Qwen3.5 loads"],
  ["Deepseek", latent],
  ["Kimi", latent],
  ["MiniCPM3", "multi-head latent attention is not supported; openbmb/MiniCPM5-1B loads"],
  ["Llava", `${vision}; the text of Qwen3.5 and of Mistral 3 loads from their files`],
  ["Qwen2VL", `${vision}; the text of Qwen3.5 loads from its files`],
  ["Qwen2_5_VL", `${vision}; the text of Qwen3.5 loads from its files`],
  ["Qwen3VL", `${vision}; the text of Qwen3.5 loads from its files`],
  ["Lfm2Vl", `${vision}; LFM2 (LiquidAI/LFM2-350M to 2.6B) loads`],
];

/** Rejects a model that is known not to load, and names an alternative. */
export function refuseByName(config: JsonFields): void {
  const listed = config.get("architectures");
  const field = Array.isArray(listed) ? "architectures" : "model_type";
  const name: unknown = Array.isArray(listed) ? listed[0] : config.get(field);
  if (typeof name !== "string") return;
  // The `model_type` of a Gemma 3 with vision is a prefix of that of its text model.
  const known =
    field === "model_type" && name === "gemma3" ? "Gemma3ForConditionalGeneration" : name;
  const [, reason] = refusals.find(([start]) => bare(known).startsWith(bare(start))) ?? [];
  if (reason !== undefined) throw config.refuse(field, reason);
}

/** Normalizes names, so that classes and types compare. */
function bare(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}

/** Rejects a text model by its unsupported fields, and names an alternative if one is known. */
export function refuseParts(config: JsonFields): void {
  refuseQuantized(config);
  const present: readonly (readonly [field: string, meaning: string])[] = [
    ["vision_config", vision],
    ["audio_config", "models with audio are not supported"],
    ["attn_logit_softcapping", "soft caps on scores are not supported"],
    ["final_logit_softcapping", "soft caps on logits are not supported"],
  ];
  for (const [field, meaning] of present) {
    if (config.get(field) !== undefined) throw config.refuse(field, meaning);
  }
  const dense =
    config.get("model_type") === "granitemoehybrid"
      ? "ibm-granite/granite-4.0-350m, h-350m, 1b, h-1b and micro load"
      : "dense models load";
  for (const field of ["num_experts", "num_local_experts", "n_routed_experts"]) {
    if (config.integer(field, 0, 0) > 0) throw config.refuse(field, `${experts}; ${dense}`);
  }
  if (config.boolean("use_bidirectional_attention", false)) {
    throw config.refuse("use_bidirectional_attention", "tokens see earlier ones only");
  }
}

function refuseQuantized(config: JsonFields): void {
  const field = "quantization_config";
  const method = config.get(field);
  if (method === undefined) return;
  const isFp8 = isObject(method) && method["quant_method"] === "fp8";
  const original =
    isFp8 && config.get("model_type") === "ministral3"
      ? 'the folder of the same name with "-BF16" at its end loads'
      : "use the original F32, F16 or BF16 weights";
  throw config.refuse(field, `quantized weights are not supported: ${original}`);
}
