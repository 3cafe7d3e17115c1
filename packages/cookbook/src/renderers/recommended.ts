import type { Tokenizer } from "@tinker-ts/hub";

const nemotronThinking = [
  "nemotron3",
  "nemotron3_disable_thinking",
  "nemotron3_preserve_thinking",
] as const;

/** Renderers by model, the recommended one first. */
const renderersOf: Readonly<Record<string, readonly string[]>> = {
  "tinker-ts/sprout": ["chat_template"],
  ...each(
    ["role_colon"],
    [
      "meta-llama/Llama-3.2-1B",
      "meta-llama/Llama-3.2-3B",
      "meta-llama/Llama-3.1-8B",
      "meta-llama/Llama-3.1-70B",
      "Qwen/Qwen3-8B-Base",
      "Qwen/Qwen3-30B-A3B-Base",
      "Qwen/Qwen3.5-9B-Base",
      "Qwen/Qwen3.5-35B-A3B-Base",
      "deepseek-ai/DeepSeek-V3.1-Base",
    ],
  ),
  ...each(["llama3"], ["meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"]),
  ...each(
    ["qwen3", "qwen3_disable_thinking"],
    ["Qwen/Qwen3-8B", "Qwen/Qwen3-32B", "Qwen/Qwen3-30B-A3B"],
  ),
  ...each(
    ["qwen3_instruct"],
    [
      "Qwen/Qwen3-4B-Instruct-2507",
      "Qwen/Qwen3-30B-A3B-Instruct-2507",
      "Qwen/Qwen3-235B-A22B-Instruct-2507",
    ],
  ),
  ...each(
    ["qwen3_vl_instruct"],
    ["Qwen/Qwen3-VL-30B-A3B-Instruct", "Qwen/Qwen3-VL-235B-A22B-Instruct"],
  ),
  ...each(
    ["qwen3_5", "qwen3_5_disable_thinking"],
    [
      "Qwen/Qwen3.5-4B",
      "Qwen/Qwen3.5-9B",
      "Qwen/Qwen3.5-27B",
      "Qwen/Qwen3.5-35B-A3B",
      "Qwen/Qwen3.5-397B-A17B",
      "Qwen/Qwen3.6-27B",
      "Qwen/Qwen3.6-35B-A3B",
    ],
  ),
  // The small ones do not reason by default.
  ...each(["qwen3_5_disable_thinking", "qwen3_5"], ["Qwen/Qwen3.5-0.8B", "Qwen/Qwen3.5-2B"]),
  "Qwen/Qwen3.8-27B": [
    "qwen3_8_xhigh_reasoning",
    "qwen3_8_disable_thinking",
    "qwen3_8_medium_reasoning",
    "qwen3_8_low_reasoning",
  ],
  ...each(
    ["lfm2"],
    ["LiquidAI/LFM2-350M", "LiquidAI/LFM2-700M", "LiquidAI/LFM2-1.2B", "LiquidAI/LFM2-2.6B"],
  ),
  ...each(
    ["lfm2_5"],
    [
      "LiquidAI/LFM2.5-350M",
      "LiquidAI/LFM2.5-1.2B-Instruct",
      "LiquidAI/LFM2.5-1.2B-Thinking",
      "LiquidAI/LFM2.5-2.6B",
    ],
  ),
  ...each(
    ["granite4"],
    [
      "ibm-granite/granite-4.0-350m",
      "ibm-granite/granite-4.0-1b",
      "ibm-granite/granite-4.0-micro",
      "ibm-granite/granite-4.0-h-350m",
      "ibm-granite/granite-4.0-h-1b",
      "ibm-granite/granite-4.0-h-micro",
    ],
  ),
  ...each(["granite4_1"], ["ibm-granite/granite-4.1-3b", "ibm-granite/granite-4.1-8b"]),
  "allenai/Olmo-3-7B-Instruct": ["olmo3"],
  ...each(["olmo3_thinking"], ["allenai/Olmo-3-7B-Think", "allenai/Olmo-3-32B-Think"]),
  ...each(
    ["ministral3"],
    [
      "mistralai/Ministral-3-3B-Instruct-2512",
      "mistralai/Ministral-3-8B-Instruct-2512",
      "mistralai/Ministral-3-14B-Instruct-2512",
    ],
  ),
  ...each(
    ["ministral3_reasoning"],
    [
      "mistralai/Ministral-3-3B-Reasoning-2512",
      "mistralai/Ministral-3-8B-Reasoning-2512",
      "mistralai/Ministral-3-14B-Reasoning-2512",
    ],
  ),
  ...each(
    ["minicpm5", "minicpm5_disable_thinking", "minicpm5_thinking"],
    ["openbmb/MiniCPM5-1B", "openbmb/MiniCPM5-2B"],
  ),
  "deepseek-ai/DeepSeek-V3.1": ["deepseekv3", "deepseekv3_thinking"],
  ...each(
    ["gpt_oss_no_sysprompt", "gpt_oss_medium_reasoning"],
    ["openai/gpt-oss-20b", "openai/gpt-oss-120b"],
  ),
  "moonshotai/Kimi-K2-Thinking": ["kimi_k2"],
  "moonshotai/Kimi-K2.5": ["kimi_k25", "kimi_k25_disable_thinking"],
  "moonshotai/Kimi-K2.6": ["kimi_k26", "kimi_k26_disable_thinking", "kimi_k26_preserve_thinking"],
  "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": nemotronThinking,
  "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16": [...nemotronThinking, "nemotron3_low_thinking"],
  "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16": [
    "nemotron3_ultra",
    "nemotron3_ultra_disable_thinking",
    "nemotron3_ultra_medium_thinking",
    "nemotron3_ultra_preserve_thinking",
  ],
  "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16": [
    "nemotron3_ultra",
    "nemotron3_ultra_disable_thinking",
    "nemotron3_ultra_preserve_thinking",
  ],
};

/**
 * The renderers for a model, the recommended one first; none if the model is unknown. A suffix after a
 * colon in the name, such as a longer context, is ignored.
 */
export function recommendedRenderers(model: string): readonly string[] {
  const name = model.split(":")[0]!;
  if (Object.hasOwn(renderersOf, name)) return renderersOf[name]!;
  return name.startsWith("thinkingmachines/Inkling") ? ["tml_v0"] : [];
}

/**
 * The renderer to use for a model: the recommended one, else the model's own chat template, or plain text
 * for a base model without one.
 */
export function recommendedRenderer(
  model: string,
  tokenizer: Pick<Tokenizer, "chatTemplates">,
): string {
  const [first] = recommendedRenderers(model);
  return first ?? (tokenizer.chatTemplates.size > 0 ? "chat_template" : "role_colon");
}

function each(
  renderers: readonly string[],
  models: readonly string[],
): Record<string, readonly string[]> {
  return Object.fromEntries(models.map((model) => [model, renderers]));
}
