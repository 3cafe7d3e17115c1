import type { ChatFormat } from "../chat-format.js";
import type { RendererOptions } from "../registry.js";
import { deepSeek } from "./deepseek.js";
import { gptOss } from "./gpt-oss.js";
import { granite4 } from "./granite4.js";
import { kimi, type KimiVariant } from "./kimi.js";
import { lfm2 } from "./lfm2.js";
import { minicpm5 } from "./minicpm5.js";
import { ministral3 } from "./ministral3.js";
import { nemotron, type NemotronVariant } from "./nemotron.js";
import { llama3 } from "./llama3.js";
import { olmo3 } from "./olmo3.js";
import { qwen3, qwen35, qwen38, qwen3Plain } from "./qwen.js";
import { roleColon } from "./role-colon.js";

type Formats = Readonly<Record<string, (options: RendererOptions) => ChatFormat>>;

/** The formats that are built in, by the names of their renderers. */
export const builtInFormats: Formats = {
  role_colon: () => roleColon,
  llama3: () => llama3,
  qwen3: (options) => qwen3("qwen3", options, "think"),
  qwen3_disable_thinking: (options) => qwen3("qwen3_disable_thinking", options, "off"),
  qwen3_instruct: (options) => qwen3Plain("qwen3_instruct", options, "instruct"),
  qwen3_vl: (options) => qwen3Plain("qwen3_vl", options, "vl"),
  qwen3_vl_instruct: (options) => qwen3Plain("qwen3_vl_instruct", options, "vl_instruct"),
  qwen3_5: (options) => qwen35("qwen3_5", options, "think"),
  qwen3_5_disable_thinking: (options) => qwen35("qwen3_5_disable_thinking", options, "off"),
  qwen3_8_xhigh_reasoning: (options) => qwen38("qwen3_8_xhigh_reasoning", options, "xhigh"),
  qwen3_8_medium_reasoning: (options) => qwen38("qwen3_8_medium_reasoning", options, "medium"),
  qwen3_8_low_reasoning: (options) => qwen38("qwen3_8_low_reasoning", options, "low"),
  qwen3_8_disable_thinking: (options) => qwen38("qwen3_8_disable_thinking", options, "off"),
  deepseekv3: (options) => deepSeek("deepseekv3", options, "off"),
  deepseekv3_disable_thinking: (options) => deepSeek("deepseekv3_disable_thinking", options, "off"),
  deepseekv3_thinking: (options) => deepSeek("deepseekv3_thinking", options, "think"),
  ...kimiFormats({
    kimi_k2: { generation: "k2" },
    kimi_k25: { generation: "k25" },
    kimi_k25_disable_thinking: { generation: "k25", mode: "off" },
    kimi_k26: { generation: "k25" },
    kimi_k26_disable_thinking: { generation: "k25", mode: "off" },
    kimi_k26_preserve_thinking: { generation: "k25", preserves: true },
  }),
  ...nemotronFormats({
    nemotron3: { kind: "nano" },
    nemotron3_low_thinking: { kind: "nano", effort: "low" },
    nemotron3_disable_thinking: { kind: "nano", mode: "off" },
    nemotron3_preserve_thinking: { kind: "nano", preserves: true },
    nemotron3_ultra: { kind: "ultra" },
    nemotron3_ultra_disable_thinking: { kind: "ultra", mode: "off" },
    nemotron3_ultra_medium_thinking: { kind: "ultra", effort: "efficient" },
    nemotron3_ultra_preserve_thinking: { kind: "ultra", preserves: true },
  }),
  lfm2: (options) => lfm2("lfm2", options, "2"),
  lfm2_5: (options) => lfm2("lfm2_5", options, "2.5"),
  granite4: () => granite4("granite4", "4.0"),
  granite4_1: () => granite4("granite4_1", "4.1"),
  olmo3: () => olmo3("olmo3", "instruct"),
  olmo3_thinking: () => olmo3("olmo3_thinking", "think"),
  ministral3: () => ministral3("ministral3", "instruct"),
  ministral3_reasoning: () => ministral3("ministral3_reasoning", "reasoning"),
  minicpm5: (options) => minicpm5("minicpm5", options, "free"),
  minicpm5_thinking: (options) => minicpm5("minicpm5_thinking", options, "think"),
  minicpm5_disable_thinking: (options) => minicpm5("minicpm5_disable_thinking", options, "off"),
  gpt_oss_no_sysprompt: (options) => gptOss("gpt_oss_no_sysprompt", options),
  gpt_oss_low_reasoning: (options) => gptOss("gpt_oss_low_reasoning", options, "low"),
  gpt_oss_medium_reasoning: (options) => gptOss("gpt_oss_medium_reasoning", options, "medium"),
  gpt_oss_high_reasoning: (options) => gptOss("gpt_oss_high_reasoning", options, "high"),
};

function kimiFormats(variants: Readonly<Record<string, KimiVariant>>): Formats {
  return Object.fromEntries(
    Object.entries(variants).map(([name, variant]) => [
      name,
      (options: RendererOptions) => kimi(name, options, variant),
    ]),
  );
}

function nemotronFormats(variants: Readonly<Record<string, NemotronVariant>>): Formats {
  return Object.fromEntries(
    Object.entries(variants).map(([name, variant]) => [
      name,
      (options: RendererOptions) => nemotron(name, options, variant),
    ]),
  );
}
