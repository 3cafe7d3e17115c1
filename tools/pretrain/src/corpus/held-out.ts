import { createHash } from "node:crypto";

/** One of this many prompts is never trained on. */
const heldOutShare = 50;

/**
 * Whether a prompt is kept for evaluation. It follows from the text alone, so that no prompt can be on
 * both sides, however often it is drawn.
 */
export function isHeldOut(prompt: string): boolean {
  return createHash("sha256").update(prompt).digest().readUInt32LE() % heldOutShare === 0;
}
