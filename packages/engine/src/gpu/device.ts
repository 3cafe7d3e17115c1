import type { Device } from "../execution/device.js";
import { fusedProducts, logSoftmaxes, normStatistics } from "./lowering.js";

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
