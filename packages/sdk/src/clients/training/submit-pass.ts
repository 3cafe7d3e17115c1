import { mayHaveBeenApplied } from "../../errors/api-error.js";
import type { Operation } from "../../futures/operation.js";
import { abortable } from "../../runtime/abortable.js";
import type { Turn } from "../../runtime/turn-line.js";
import { holdHeaders, type Acceptance } from "../../transport/acceptance.js";
import type { DataChunk } from "./chunk-data.js";
import type { Pass } from "./encode-pass.js";
import { failedChunkError } from "./failed-chunk.js";
import { fillGaps } from "./fill-gaps.js";
import { sendPass } from "./send-pass.js";
import type { TrainingRun } from "./training-run.js";

/** A pass without its data, which comes in chunks. */
export type PassFrame = Omit<Pass, "data">;

/**
 * Sends the chunks of one pass when its turn comes; resolves to what the server said, in chunk order.
 *
 * - In parallel mode chunks 2 to n go at once and the first goes last: the server holds the others
 *   until it arrives and then has the whole batch in front of it.
 * - A chunk that is refused, or an abort, keeps the rest from being sent. Numbers of chunks that were
 *   not accepted although later ones were are filled with passes that change nothing, so that the
 *   server can go on to later operations.
 */
export async function submitPass(
  run: TrainingRun,
  operation: Operation,
  turn: Turn,
  frame: PassFrame,
  chunks: readonly DataChunk[],
  onAccepted: () => void = () => {},
): Promise<readonly Acceptance[]> {
  const { session, sequence } = run;
  const { clock } = session.runtime;
  const waitStartedAt = clock.now();
  try {
    await abortable(turn.ready, operation.signal);
    sequence.assertIntact();
  } catch (error) {
    turn.end();
    throw error;
  }
  operation.spent("waitMs", waitStartedAt);
  const submission = async (): Promise<readonly Acceptance[]> => {
    try {
      const accepted = await submitAll(run, operation, frame, chunks);
      onAccepted();
      return accepted;
    } finally {
      turn.end();
    }
  };
  return abortable(submission(), operation.signal);
}

async function submitAll(
  run: TrainingRun,
  operation: Operation,
  frame: PassFrame,
  chunks: readonly DataChunk[],
): Promise<readonly Acceptance[]> {
  const { session, sequence } = run;
  const firstSeqId = sequence.next;
  const isOnly = chunks.length === 1;
  const accepted = new Map<number, Acceptance>();
  const failures = new Map<number, unknown>();
  let doubt: unknown;

  const submit = async (index: number): Promise<void> => {
    const chunk = { ...chunks[index]!, seqId: firstSeqId + index, isOnly };
    let isSent = false;
    const onSend = (): void => {
      isSent = true;
    };
    try {
      accepted.set(index, await submitChunk(run, operation, frame, chunk, onSend));
    } catch (error) {
      failures.set(index, error);
      // What was given up before it was sent is not in doubt, whatever the reason looks like.
      if (isSent && mayHaveBeenApplied(error)) doubt ??= error;
    }
  };

  const [first = 0, ...others] = chunks.keys();
  if (session.connection.config.parallelFwdbwdChunks) {
    await Promise.all(others.map(submit));
    if (failures.size === 0) await submit(first);
  } else {
    for (const index of [first, ...others]) {
      if (failures.size === 0) await submit(index);
    }
  }

  if (failures.size === 0) {
    sequence.advance(chunks.length);
    return chunks.map((_, index) => accepted.get(index)!);
  }
  const error = failedChunkError(frame, chunks.length, failures, [...accepted.keys()]);
  if (doubt !== undefined) {
    sequence.lose(`${operation.name} (seq_id ${firstSeqId} and following)`, doubt);
  } else {
    await fillGaps(run, operation, frame, chunks, firstSeqId, accepted);
  }
  throw error;
}

async function submitChunk(
  run: TrainingRun,
  operation: Operation,
  frame: PassFrame,
  chunk: DataChunk & { readonly seqId: number; readonly isOnly: boolean },
  onSend: () => void,
): Promise<Acceptance> {
  const { session, sequence } = run;
  const { clock } = session.runtime;
  const waitStartedAt = clock.now();
  await session.forwardBackwardBytes.acquire(chunk.sizeBytes, operation.signal);
  operation.spent("waitMs", waitStartedAt);
  try {
    operation.signal.throwIfAborted();
    onSend();
    const pass = { ...frame, data: chunk.data };
    const isAlone = chunk.isOnly && sequence.isAlone;
    const headers = holdHeaders({ isAlone, sizeBytes: chunk.sizeBytes });
    const accepted = await sendPass(session, operation, pass, chunk.seqId, headers);
    operation.accepted(accepted.requestId);
    return accepted;
  } finally {
    session.forwardBackwardBytes.release(chunk.sizeBytes);
  }
}
