import { isObject, type JsonObject } from "../../files/json.js";
import { JsonFields } from "../../files/json-fields.js";
import { EngineError } from "../engine-error.js";
import type { LoraAdapter } from "./adapter.js";

/** The fields of an `adapter_config.json` that are not in its tensors. */
export interface PeftConfig {
  readonly rank: number;
  readonly alpha: number;
  readonly baseModel: string | null;
  /** Names or endings of paths, as PEFT matches them; null for a pattern that only PEFT expands. */
  readonly targetModules: readonly string[] | null;
  /** Whether the adapter has every matrix that `targetModules` names, in every layer. */
  readonly coversAllLayers: boolean;
}

/** Checks a parsed `adapter_config.json` and rejects unsupported settings by name. */
export function parsePeftConfig(json: JsonObject, where: string): PeftConfig {
  const fields = new JsonFields(json, where, unsupported);
  if (fields.string("peft_type", "LORA") !== "LORA") {
    throw fields.refuse("peft_type", 'only "LORA" adapters are supported');
  }
  if (fields.string("bias", "none") !== "none") {
    throw fields.refuse("bias", 'trained biases are not supported ("none" is)');
  }
  refuseOtherBases(fields);
  refuseUnknown(fields);
  const rank = fields.integer("r", 1);
  const alpha = fields.positive("lora_alpha");
  const targets = fields.get("target_modules");
  return {
    rank,
    // Rank-stabilized LoRA divides by the root of the rank; in the usual form that is a larger alpha.
    alpha: fields.boolean("use_rslora", false) ? alpha * Math.sqrt(rank) : alpha,
    baseModel: fields.string("base_model_name_or_path", "") || null,
    targetModules: isTextList(targets) ? targets : null,
    coversAllLayers:
      isEmpty(fields.get("layers_to_transform")) && isEmpty(fields.get("exclude_modules")),
  };
}

function unsupported(message: string): EngineError {
  return new EngineError("unsupported_adapter", message);
}

/** The `adapter_config.json` of an adapter, with every field that loaders look for. */
export function formatPeftConfig(
  adapter: Pick<LoraAdapter, "baseModel" | "rank" | "alpha"> & {
    readonly targets: readonly string[];
  },
): JsonObject {
  return {
    peft_type: "LORA",
    task_type: "CAUSAL_LM",
    base_model_name_or_path: adapter.baseModel,
    revision: null,
    r: adapter.rank,
    lora_alpha: adapter.alpha,
    lora_dropout: 0,
    target_modules: adapter.targets,
    exclude_modules: null,
    layers_to_transform: null,
    layers_pattern: null,
    modules_to_save: null,
    rank_pattern: {},
    alpha_pattern: {},
    bias: "none",
    fan_in_fan_out: false,
    use_rslora: false,
    use_dora: false,
    init_lora_weights: true,
    inference_mode: true,
  };
}

// These do not affect a finished adapter, or are read elsewhere.
const harmless = new Set([
  "auto_mapping",
  "base_model_name_or_path",
  "bias",
  "corda_config",
  "ensure_weight_tying",
  "eva_config",
  "exclude_modules",
  "inference_mode",
  "init_lora_weights",
  "layers_pattern",
  "layers_to_transform",
  "loftq_config",
  "lora_alpha",
  "lora_dropout",
  "lora_ga_config",
  "megatron_core",
  "peft_type",
  "peft_version",
  "qalora_group_size",
  "r",
  "revision",
  "runtime_config",
  "target_modules",
  "task_type",
  "use_rslora",
]);

const meanings: Readonly<Record<string, string>> = {
  alpha_pattern: "one alpha for all matrices is supported",
  fan_in_fan_out: "transposed weights are not supported",
  layer_replication: "replicated layers are not supported",
  lora_bias: "trained biases are not supported",
  modules_to_save: "only LoRA factors are supported, not whole modules",
  rank_pattern: "one rank for all matrices is supported",
  target_parameters: "adapters on single parameters are not supported",
  trainable_token_indices: "trained embeddings are not supported",
  use_dora: "weight-decomposed adapters (DoRA) are not supported",
};

/** An unknown field that is set may change the meaning of the adapter. */
function refuseUnknown(fields: JsonFields): void {
  for (const [name, value] of Object.entries(fields.json)) {
    if (harmless.has(name) || isEmpty(value)) continue;
    throw fields.refuse(name, meanings[name] ?? "this kind of adapter is not supported");
  }
}

// Some ways to initialize an adapter also change the base weights that it is added to.
function refuseOtherBases(fields: JsonFields): void {
  const init = fields.get("init_lora_weights") ?? true;
  if (typeof init === "boolean") return;
  if (typeof init === "string" && ["gaussian", "eva", "orthogonal"].includes(init)) return;
  throw fields.refuse(
    "init_lora_weights",
    "such adapters fit a changed base model; let PEFT convert it to a plain adapter when saving",
  );
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isObject(value)) return Object.keys(value).length === 0;
  return value === undefined || value === null || value === false;
}
