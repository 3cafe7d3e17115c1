import {
  fusedProducts,
  logSoftmaxes,
  normStatistics,
  type LoweringRule,
} from "../graph/lowering.js";

/** What can compute: the processor, or a GPU through WebGPU. */
export type DeviceName = "cpu" | "gpu";

/** Something that runs programs, and what it needs done differently. */
export interface Device {
  readonly name: DeviceName;
  /** ONNX Runtime's name of it. */
  readonly provider: "cpu" | "webgpu";
  /** How operators are written for it. */
  readonly rules: readonly LoweringRule[];
  /** New tokens of a sequence that attention with a cache takes at once. */
  readonly mostNewTokens: number;
}

/** The processor: graphs run as they are. */
export const processor: Device = {
  name: "cpu",
  provider: "cpu",
  rules: [],
  mostNewTokens: Infinity,
};

/**
 * WebGPU's attention with a cache has another kernel for 32 new tokens and more, which is wrong on adapters
 * whose subgroups have fewer than 8 lanes. Shorter blocks do not meet it.
 */
export const attentionBlocks = { name: "attention blocks", mostNewTokens: 16 };

const gpuRules = [normStatistics, fusedProducts, logSoftmaxes];

/** A GPU; cures can be left out, where they are not needed and to see that a check notices. */
export function gpuDevice(without: readonly string[] = []): Device {
  const isLeftOut = ({ name }: { readonly name: string }): boolean => without.includes(name);
  return {
    name: "gpu",
    provider: "webgpu",
    rules: gpuRules.filter((rule) => !isLeftOut(rule)),
    mostNewTokens: isLeftOut(attentionBlocks) ? Infinity : attentionBlocks.mostNewTokens,
  };
}
