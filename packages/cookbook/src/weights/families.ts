import type { JsonObject } from "@tinker-ts/hub/files";
import { WeightsError } from "./weights-error.js";

/** How the names of an adapter become those of a family of models. */
export interface Family {
  readonly name: string;
  /** Beginnings of module paths, and what stands in their place; the first that fits is taken. */
  readonly prefixes: readonly (readonly [from: string, to: string])[];
  /** Parts of paths that have another name. */
  readonly segments: Readonly<Record<string, string>>;
  /** Where the unembedding is. */
  readonly head: string;
  /** Names of an expert's projections. */
  readonly experts: Readonly<Record<string, string>>;
  /** Modules that the base model has as one: their rows follow each other in this order. */
  readonly joined: Readonly<Record<string, readonly string[]>>;
  /** How experts that are one tensor are laid out: inputs before outputs or not, gate and up by turns or not. */
  readonly fused?: { readonly inputsFirst: boolean; readonly interleaved: boolean } | undefined;
}

const standard: Family = {
  name: "default",
  prefixes: [],
  segments: {},
  head: "lm_head",
  experts: { w1: "gate_proj", w3: "up_proj", w2: "down_proj" },
  joined: {},
};

const families: readonly {
  readonly is: (config: JsonObject) => boolean;
  readonly family: Family;
}[] = [
  {
    is: (config) => hasArchitecture(config, "GptOss"),
    family: {
      ...standard,
      name: "gpt_oss",
      segments: { attn: "self_attn" },
      fused: { inputsFirst: true, interleaved: true },
    },
  },
  {
    is: (config) => config["model_type"] === "deepseek_v3",
    family: { ...standard, name: "deepseek" },
  },
  {
    is: (config) => hasArchitecture(config, "NemotronH"),
    family: {
      ...standard,
      name: "nemotron",
      prefixes: [
        ["model.layers.", "backbone.layers."],
        ["model.lm_head", "lm_head"],
      ],
      experts: { w1: "up_proj", w2: "down_proj" },
      joined: { in_proj: ["gate_proj", "x_proj"] },
    },
  },
  {
    is: (config) => /^qwen3_5(_moe)?(_text)?$/.test(String(config["model_type"])),
    family: {
      ...standard,
      name: "qwen3_5",
      joined: { in_proj_qkv: ["in_proj_q", "in_proj_k", "in_proj_v"] },
      fused: { inputsFirst: false, interleaved: false },
    },
  },
  {
    is: (config) => config["model_type"] === "kimi_k25",
    family: {
      ...standard,
      name: "kimi_k25",
      prefixes: [["model.", "language_model.model."]],
      head: "language_model.lm_head",
    },
  },
  {
    is: (config) => config["model_type"] === "qwen3_vl_moe",
    family: { ...standard, name: "qwen3_vl_moe", fused: { inputsFirst: true, interleaved: false } },
  },
];

/** How files call a text model inside another: modules of transformers have the first way in any case. */
const insideAnother = [
  { prefix: "model.language_model.", head: "lm_head" },
  { prefix: "language_model.model.", head: "language_model.lm_head" },
] as const;

/** The family of a model, with the names of its files, by its configuration and the names of its weights. */
export function familyOf(config: JsonObject, baseNames: Iterable<string>): Family {
  const known = families.find(({ is }) => is(config))?.family ?? standard;
  if (known.prefixes.length > 0) return known;
  const names = [...baseNames];
  const usual = names.length === 0 && "text_config" in config ? insideAnother[0] : undefined;
  const wrapped =
    insideAnother.find(({ prefix }) => names.some((name) => name.startsWith(prefix))) ?? usual;
  if (wrapped === undefined) return known;
  return { ...known, prefixes: [["model.", wrapped.prefix]], head: wrapped.head };
}

/** The family with the names that servers have for modules. */
export function servedFamily(family: Family): Family {
  const [outer] = insideAnother;
  switch (family.name) {
    case "deepseek":
      throw new WeightsError("servers take no adapters of DeepSeek-V3 models; merge it instead");
    case "nemotron":
      return { ...family, prefixes: [["model.lm_head", "lm_head"]] };
    case "kimi_k25":
      return family;
    default:
      return family.prefixes.length === 0
        ? family
        : { ...family, prefixes: [["model.", outer.prefix]], head: outer.head };
  }
}

/** The module of the base model for a module of an adapter. */
export function renameModule(path: string, family: Family): string {
  const plain = path
    .replace(/^(model\.language_model|language_model\.model)\./, "model.")
    .replace(/^language_model\.lm_head$/, "lm_head");
  if (plain === "model.unembed_tokens" || plain === "lm_head" || plain === family.head)
    return family.head;
  const [from, to] = family.prefixes.find(([prefix]) => plain.startsWith(prefix)) ?? ["", ""];
  return `${to}${plain.slice(from.length)}`
    .split(".")
    .map((segment) =>
      Object.hasOwn(family.segments, segment) ? family.segments[segment]! : segment,
    )
    .join(".");
}

/** An expert's projection by the name that an adapter has for it. */
export function expertProjection(family: Family, leaf: string): string {
  const name =
    family.experts[leaf] ?? (Object.values(family.experts).includes(leaf) ? leaf : undefined);
  if (name === undefined) throw new WeightsError(`experts of ${family.name} have no ${leaf}`);
  return name;
}

function hasArchitecture(config: JsonObject, part: string): boolean {
  const names = config["architectures"];
  return Array.isArray(names) && names.some((name) => String(name).includes(part));
}
