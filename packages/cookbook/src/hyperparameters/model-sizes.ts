import { readFileSync } from "node:fs";
import path from "node:path";
import { isObject, parseJson } from "@tinker-ts/hub/files";

/** Sizes of a model that learning rates and adapters depend on. */
export interface ModelSizes {
  /** Width of the hidden states. */
  readonly hiddenSize: number;
  /** Adapter parameters per unit of rank, by the part that they belong to; null if unknown. */
  readonly perRank: {
    readonly mlp: number;
    readonly attention: number;
    readonly unembedding: number;
  } | null;
}

type Row = readonly [hiddenSize: number, mlp: number, attention: number, unembedding: number];

/** In expert layers the factor on the side of the hidden states is shared by all experts. */
const rows: Readonly<Record<string, Row>> = {
  "Qwen/Qwen3-235B-A22B-Instruct-2507": [4096, 56_598_528, 3_176_448, 156_032],
  "Qwen/Qwen3-30B-A3B": [2048, 14_450_688, 835_584, 153_984],
  "Qwen/Qwen3-30B-A3B-Base": [2048, 14_450_688, 835_584, 153_984],
  "Qwen/Qwen3-30B-A3B-Instruct-2507": [2048, 14_450_688, 835_584, 153_984],
  "Qwen/Qwen3-32B": [5120, 5_898_240, 2_490_368, 157_056],
  "Qwen/Qwen3-4B-Instruct-2507": [2560, 1_327_104, 737_280, 154_496],
  "Qwen/Qwen3-8B": [4096, 1_769_472, 958_464, 156_032],
  "Qwen/Qwen3-8B-Base": [4096, 1_769_472, 958_464, 156_032],
  "Qwen/Qwen3-VL-235B-A22B-Instruct": [4096, 56_598_528, 3_176_448, 156_032],
  "Qwen/Qwen3-VL-30B-A3B-Instruct": [2048, 14_450_688, 835_584, 153_984],
  "Qwen/Qwen3.5-0.8B": [1024, 331_776, 344_064, 249_344],
  "Qwen/Qwen3.5-27B": [5120, 4_325_376, 2_965_504, 253_440],
  "Qwen/Qwen3.5-35B-A3B": [2048, 16_281_600, 1_013_760, 250_368],
  "Qwen/Qwen3.5-35B-A3B-Base": [2048, 16_281_600, 1_013_760, 250_368],
  "Qwen/Qwen3.5-397B-A17B": [4096, 96_030_720, 2_841_600, 252_416],
  "Qwen/Qwen3.5-4B": [2560, 1_130_496, 897_024, 250_880],
  "Qwen/Qwen3.5-9B": [4096, 1_572_864, 1_130_496, 252_416],
  "Qwen/Qwen3.5-9B-Base": [4096, 1_572_864, 1_130_496, 252_416],
  "Qwen/Qwen3.6-27B": [5120, 4_325_376, 2_965_504, 253_440],
  "Qwen/Qwen3.6-35B-A3B": [2048, 16_281_600, 1_013_760, 250_368],
  "Qwen/Qwen3.8-27B": [5120, 4_325_376, 2_965_504, 253_440],
  "deepseek-ai/DeepSeek-V3.1": [7168, 94_307_328, 2_440_000, 136_448],
  "deepseek-ai/DeepSeek-V3.1-Base": [7168, 94_307_328, 2_440_000, 136_448],
  "meta-llama/Llama-3.1-70B": [8192, 8_847_360, 4_096_000, 136_448],
  "meta-llama/Llama-3.1-8B": [4096, 1_769_472, 851_968, 132_352],
  "meta-llama/Llama-3.1-8B-Instruct": [4096, 1_769_472, 851_968, 132_352],
  "meta-llama/Llama-3.2-1B": [2048, 491_520, 212_992, 130_304],
  "meta-llama/Llama-3.2-3B": [3072, 946_176, 573_440, 131_328],
  "meta-llama/Llama-3.3-70B-Instruct": [8192, 8_847_360, 4_096_000, 136_448],
  "moonshotai/Kimi-K2-Thinking": [7168, 144_583_680, 1_940_288, 171_008],
  "moonshotai/Kimi-K2.5": [7168, 144_583_680, 1_940_288, 171_008],
  "moonshotai/Kimi-K2.6": [7168, 144_583_680, 1_940_288, 171_008],
  "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": [2688, 11_346_176, 584_832, 133_760],
  "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16": [2688, 11_346_176, 584_832, 133_760],
  "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16": [4096, 111_349_760, 1_675_264, 135_168],
  "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16": [8192, 254_529_536, 4_134_912, 139_264],
  "openai/gpt-oss-120b": [2880, 40_124_160, 746_496, 203_968],
  "openai/gpt-oss-20b": [2880, 6_842_880, 497_664, 203_968],
  "thinkingmachines/Inkling": [6144, 154_705_920, 3_424_256, 207_168],
};

/** Widths of models that the service does not offer: their adapters are counted by the engine. */
const hiddenSizes: Readonly<Record<string, number>> = {
  "LiquidAI/LFM2-350M": 1024,
  "LiquidAI/LFM2-700M": 1536,
  "LiquidAI/LFM2-1.2B": 2048,
  "LiquidAI/LFM2-2.6B": 2048,
  "LiquidAI/LFM2.5-350M": 1024,
  "LiquidAI/LFM2.5-1.2B-Base": 2048,
  "LiquidAI/LFM2.5-1.2B-Instruct": 2048,
  "LiquidAI/LFM2.5-1.2B-Thinking": 2048,
  "LiquidAI/LFM2.5-2.6B": 2048,
  "Qwen/Qwen3.5-2B": 2048,
  "Qwen/Qwen3.5-2B-Base": 2048,
  "allenai/Olmo-3-7B-Instruct": 4096,
  "allenai/Olmo-3-7B-Think": 4096,
  "allenai/Olmo-3-32B-Think": 5120,
  "ibm-granite/granite-4.0-1b": 2048,
  "ibm-granite/granite-4.0-350m": 1024,
  "ibm-granite/granite-4.0-h-1b": 1536,
  "ibm-granite/granite-4.0-h-350m": 768,
  "ibm-granite/granite-4.0-h-micro": 2048,
  "ibm-granite/granite-4.0-micro": 2560,
  "mistralai/Ministral-3-3B-Instruct-2512": 3072,
  "mistralai/Ministral-3-3B-Instruct-2512-BF16": 3072,
  "mistralai/Ministral-3-8B-Instruct-2512": 4096,
  "mistralai/Ministral-3-8B-Instruct-2512-BF16": 4096,
  "mistralai/Ministral-3-14B-Instruct-2512": 5120,
  "mistralai/Ministral-3-14B-Instruct-2512-BF16": 5120,
  "openbmb/MiniCPM5-1B": 1536,
  "thinkingmachines/Inkling-Small": 4096,
};

/** The sizes of a model by its name or its folder, or undefined when they are not known. */
export function modelSizes(model: string): ModelSizes | undefined {
  const row = Object.hasOwn(rows, model) ? rows[model] : undefined;
  if (row) {
    const [hiddenSize, mlp, attention, unembedding] = row;
    return { hiddenSize, perRank: { mlp, attention, unembedding } };
  }
  const listed = Object.hasOwn(hiddenSizes, model) ? hiddenSizes[model] : undefined;
  const hiddenSize = listed ?? hiddenSizeOfConfig(readModelFolder(model) ?? {});
  return hiddenSize === undefined ? undefined : { hiddenSize, perRank: null };
}

/** The `config.json` of a model that is given by its folder; undefined if the name is not a folder. */
export function readModelFolder(model: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const config = parseJson(readFileSync(path.join(model, "config.json"), "utf8"));
    return isObject(config) ? config : undefined;
  } catch {
    return undefined;
  }
}

/** The hidden size of a model by its `config.json`, or that of the text model inside. */
export function hiddenSizeOfConfig(config: {
  readonly [key: string]: unknown;
}): number | undefined {
  const size = config["hidden_size"] ?? textOf(config)["hidden_size"];
  return typeof size === "number" ? size : undefined;
}

/** The `model_type` in a model's `config.json`. */
export function typeOfConfig(config: { readonly [key: string]: unknown }): string {
  const type = textOf(config)["model_type"] ?? config["model_type"];
  return typeof type === "string" ? type : "";
}

function textOf(config: { readonly [key: string]: unknown }): Readonly<Record<string, unknown>> {
  const inner = config["text_config"];
  return isObject(inner) ? inner : {};
}
