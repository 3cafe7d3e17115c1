import type { DatumLike } from "tinker-ts";

/** Four examples to learn from. */
export function randomBatch(random: () => number): DatumLike[] {
  return Array.from({ length: 4 }, () => {
    const tokens = Array.from({ length: 24 }, () => Math.floor(random() * 300));
    return {
      modelInput: tokens.slice(0, -1),
      lossFnInputs: { target_tokens: tokens.slice(1), weights: tokens.slice(1).map(() => 1) },
    };
  });
}
