import type { Device } from "../execution/device.js";
import { fusedProducts, logSoftmaxes, normStatistics } from "./lowering.js";

/**
 * WebGPU's attention with a cache has another kernel for 32 new tokens and more. It is wrong on adapters
 * with subgroups of fewer than 8 lanes. Shorter blocks avoid it.
 */
export const attentionBlocks = { name: "attention blocks", mostNewTokens: 16 };

const gpuRules = [normStatistics, fusedProducts, logSoftmaxes];

/** A GPU; workarounds can be left out where they are not needed, and to test the check. */
export function gpuDevice(without: readonly string[] = []): Device {
  const isLeftOut = ({ name }: { readonly name: string }): boolean => without.includes(name);
  return {
    name: "gpu",
    provider: "webgpu",
    rules: gpuRules.filter((rule) => !isLeftOut(rule)),
    mostNewTokens: isLeftOut(attentionBlocks) ? Infinity : attentionBlocks.mostNewTokens,
  };
}
