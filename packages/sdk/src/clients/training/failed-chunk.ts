import { PartialCallError } from "../../errors/partial-call-error.js";
import type { PassFrame } from "./submit-pass.js";

/**
 * The error of a call of which chunks failed; says what the server may have applied. A call of one
 * chunk fails with its own error, because there is nothing to add.
 */
export function failedChunkError(
  { isForwardOnly }: PassFrame,
  chunkCount: number,
  failures: ReadonlyMap<number, unknown>,
  acceptedChunks: readonly number[],
): unknown {
  const [[firstFailed, cause] = [0, undefined]] = failures;
  if (chunkCount === 1) return cause;
  const problem = cause instanceof Error ? cause.message : String(cause);
  const applied = acceptedChunks.toSorted((a, b) => a - b);
  return new PartialCallError(
    `Chunk ${firstFailed + 1} of ${chunkCount} failed: ${problem} ${consequence(isForwardOnly, applied)}`,
    { cause, chunkCount, failedChunks: [...failures.keys()], acceptedChunks: applied },
  );
}

function consequence(isForwardOnly: boolean, applied: readonly number[]): string {
  if (isForwardOnly) return "A forward pass changes nothing, so it can be repeated.";
  if (applied.length === 0) return "The server accepted no chunk; nothing was applied.";
  const list = applied.map((index) => index + 1).join(", ");
  return `The server accepted chunk(s) ${list} and may have added their gradients, which the next optimStep would use; load a checkpoint first to be rid of them.`;
}
