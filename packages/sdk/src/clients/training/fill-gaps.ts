import type { Operation } from "../../futures/operation.js";
import type { DataChunk } from "./chunk-data.js";
import { sendPass } from "./send-pass.js";
import type { PassFrame } from "./submit-pass.js";
import type { TrainingRun } from "./training-run.js";

/**
 * Repairs the order after a call of which the server has only some chunks. It runs requests strictly
 * by number and would wait for the missing ones for ever, so each gets a pass that changes nothing:
 * forward only, over one datum of an accepted chunk. Numbers after the last accepted chunk are free.
 */
export async function fillGaps(
  run: TrainingRun,
  operation: Operation,
  frame: PassFrame,
  chunks: readonly DataChunk[],
  firstSeqId: number,
  accepted: ReadonlyMap<number, unknown>,
): Promise<void> {
  const { session, sequence } = run;
  const lastAccepted = Math.max(-1, ...accepted.keys());
  const datum = chunks[lastAccepted]?.data[0];
  if (!datum) return;
  const filler = { ...frame, data: [datum], isForwardOnly: true };
  try {
    for (let index = 0; index < lastAccepted; index++) {
      if (!accepted.has(index)) await sendPass(session, operation, filler, firstSeqId + index);
    }
    sequence.advance(lastAccepted + 1);
  } catch (error) {
    sequence.lose(`${operation.name} (seq_id ${firstSeqId} and following)`, error);
  }
}
