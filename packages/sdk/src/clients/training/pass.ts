import { mayHaveBeenApplied } from "../../errors/api-error.js";
import { ArgumentError } from "../../errors/argument-error.js";
import { CancelledError } from "../../errors/tinker-error.js";
import { PartialCallError } from "../../errors/partial-call-error.js";
import type { Operation } from "../../futures/operation.js";
import { abortable, Canceller, listen, stopListening } from "../../runtime/cancellation.js";
import { decodeWith } from "../../schema/decode.js";
import { valuesOf } from "../../schema/node.js";
import { holdHeaders, type Acceptance } from "../../transport/api.js";
import { Datum, type DatumLike } from "../../types/datum.js";
import { LossFnType, type ForwardBackwardOutput } from "../../types/training.js";
import { estimateDatumBytes } from "../byte-estimate.js";
import { combineOutputs, withLossValue } from "./combine-outputs.js";
import { sendPass, type Pass } from "./send-pass.js";
import type { TrainingRun, Turn } from "./training-run.js";

const lossFns = valuesOf(LossFnType);

/** A pass that was checked and cut into chunks; nothing was sent yet. */
export interface PreparedPass {
  readonly frame: PassFrame;
  readonly chunks: readonly DataChunk[];
}

/** Checks the arguments of a pass and cuts its data to the server's limits. */
export function preparePass(
  run: TrainingRun,
  data: readonly DatumLike[],
  lossFn: LossFnType,
  lossFnConfig: Readonly<Record<string, number>> | undefined,
  isForwardOnly: boolean,
): PreparedPass {
  if (!Array.isArray(data) || data.length === 0) {
    throw new ArgumentError("data", "must be a list of at least one datum");
  }
  checkLossFn(lossFn, lossFnConfig);
  const datums = data.map(toTrainable);
  const { config } = run.session;
  return {
    frame: {
      // Read when it is sent: a load may have moved the run to another model by then.
      get modelId() {
        return run.modelId;
      },
      lossFn,
      lossFnConfig: lossFnConfig ?? null,
      isForwardOnly,
    },
    chunks: chunkData(datums, {
      maxDatums: config.fwdbwdMaxChunkLen,
      maxBytes: config.fwdbwdMaxChunkBytesCount,
    }),
  };
}

/** Sends a pass in its turn, by default the next one, waits for all of its chunks and combines their outputs. */
export async function runPass(
  run: TrainingRun,
  operation: Operation,
  { frame, chunks }: PreparedPass,
  onAccepted: (() => void) | null = null,
  turn: Turn = run.sequence.take(),
): Promise<ForwardBackwardOutput> {
  const startedAt = run.session.runtime.clock.now();
  await run.waitForTurn(operation, turn);
  const accepted = await abortable(
    submitAll(run, operation, turn, frame, chunks, onAccepted),
    operation.signal,
  );
  const roundTripMs = run.session.runtime.clock.now() - startedAt;
  const requestType = frame.isForwardOnly ? "Forward" : "ForwardBackward";
  // One failed chunk fails the call, so waiting for the others ends.
  const waiting = new Canceller();
  listen(operation.signal, waiting);
  const outputs = accepted.map(async (acceptance, index) => {
    try {
      const resultType = "ForwardBackwardOutput";
      const request = { ...acceptance, requestType, resultType, roundTripMs } as const;
      return await run.poll(request, operation, waiting);
    } catch (error) {
      const others = [...chunks.keys()].filter((other) => other !== index);
      throw failedChunkError(frame, chunks.length, new Map([[index, error]]), others);
    }
  });
  try {
    const output = combineOutputs(await Promise.all(outputs));
    const data = chunks.flatMap((chunk) => chunk.data);
    return withLossValue(output, data, frame.lossFn, frame.lossFnConfig);
  } catch (error) {
    waiting.abort(new CancelledError("Another chunk of the same call failed."));
    throw error;
  } finally {
    stopListening(operation.signal, waiting);
  }
}

function checkLossFn(
  lossFn: LossFnType,
  lossFnConfig: Readonly<Record<string, number>> | undefined,
): void {
  try {
    if (!lossFns.has(lossFn)) decodeWith(LossFnType, "lossFn", lossFn);
  } catch (error) {
    throw ArgumentError.within("lossFn", error);
  }
  for (const [name, value] of Object.entries(lossFnConfig ?? {})) {
    if (typeof value !== "number" || !Number.isFinite(value)) {
      throw new ArgumentError(
        `lossFnConfig.${name}`,
        `must be a finite number, got ${String(value)}`,
      );
    }
  }
}

function toTrainable(value: DatumLike, index: number): Datum {
  let datum: Datum;
  try {
    datum = Datum.from(value);
  } catch (error) {
    throw ArgumentError.within(`data[${index}]`, error);
  }
  if (datum.modelInput.chunks.some(({ type }) => type === "image_asset_pointer")) {
    throw new ArgumentError(
      `data[${index}].modelInput`,
      "an image asset pointer cannot be trained on; load the picture and pass an image chunk",
    );
  }
  return datum;
}

/** The server's limits on one request. */
export interface ChunkLimits {
  readonly maxDatums: number;
  readonly maxBytes: number;
}

/** Consecutive data that travel in one request. */
export interface DataChunk {
  readonly data: readonly Datum[];
  readonly sizeBytes: number;
}

/** Cuts data into requests in order; a datum that is too large by itself gets a request of its own. */
export function chunkData(data: readonly Datum[], limits: ChunkLimits): DataChunk[] {
  const chunks: DataChunk[] = [];
  let current: Datum[] = [];
  let sizeBytes = 0;
  for (const datum of data) {
    const datumBytes = estimateDatumBytes(datum);
    const isFull = current.length === limits.maxDatums || sizeBytes + datumBytes > limits.maxBytes;
    if (isFull && current.length > 0) {
      chunks.push({ data: current, sizeBytes });
      current = [];
      sizeBytes = 0;
    }
    current.push(datum);
    sizeBytes += datumBytes;
  }
  if (current.length > 0) chunks.push({ data: current, sizeBytes });
  return chunks;
}

/** A pass without its data, which comes in chunks. */
type PassFrame = Omit<Pass, "data">;

/**
 * Sends the chunks of one pass in its turn; resolves to the server's answers, in chunk order.
 *
 * - In parallel mode chunks 2 to n are sent at once and the first goes last: the server holds the others
 *   until it arrives and then has the whole batch in front of it.
 * - A chunk that is refused, or an abort, keeps the rest from being sent. Numbers of chunks that were
 *   not accepted although later ones were are filled with passes that change nothing, so that the
 *   server can go on to later operations.
 */
async function submitAll(
  run: TrainingRun,
  operation: Operation,
  turn: Turn,
  frame: PassFrame,
  chunks: readonly DataChunk[],
  onAccepted: (() => void) | null,
): Promise<readonly Acceptance[]> {
  const { session, sequence } = run;
  const firstSeqId = sequence.next;
  const accepted = new Map<number, Acceptance>();
  const failures = new Map<number, unknown>();
  let doubt: unknown;

  const submit = async (index: number): Promise<void> => {
    const place = { seqId: firstSeqId + index, isOnly: chunks.length === 1, isSent: false };
    try {
      accepted.set(index, await submitChunk(run, operation, frame, chunks[index]!, place));
    } catch (error) {
      failures.set(index, error);
      // A chunk that was aborted before it was sent is not in doubt, whatever the reason looks like.
      if (place.isSent && mayHaveBeenApplied(error)) doubt ??= error;
    }
  };

  try {
    const [first = 0, ...others] = chunks.keys();
    if (session.config.parallelFwdbwdChunks) {
      await Promise.all(others.map(submit));
      if (failures.size === 0) await submit(first);
    } else {
      for (const index of [first, ...others]) {
        if (failures.size === 0) await submit(index);
      }
    }
    if (failures.size === 0) {
      sequence.next += chunks.length;
      onAccepted?.();
      return chunks.map((_, index) => accepted.get(index)!);
    }
    const error = failedChunkError(frame, chunks.length, failures, [...accepted.keys()]);
    if (doubt !== undefined) {
      sequence.lose(`${operation.name} (seq_id ${firstSeqId} and following)`, doubt);
    } else {
      await fillGaps(run, operation, frame, chunks, firstSeqId, accepted);
    }
    throw error;
  } finally {
    turn.end();
  }
}

async function submitChunk(
  run: TrainingRun,
  operation: Operation,
  frame: PassFrame,
  chunk: DataChunk,
  place: { readonly seqId: number; readonly isOnly: boolean; isSent: boolean },
): Promise<Acceptance> {
  const { session, sequence } = run;
  const { clock } = session.runtime;
  const waitStartedAt = clock.now();
  await session.forwardBackwardBytes.acquire(chunk.sizeBytes, operation.signal);
  operation.spent("waitMs", waitStartedAt);
  try {
    operation.signal.throwIfAborted();
    place.isSent = true;
    const pass = { ...frame, data: chunk.data };
    const isAlone = place.isOnly && sequence.isShort;
    const headers = holdHeaders({ isAlone, sizeBytes: chunk.sizeBytes });
    const accepted = await sendPass(session, operation, pass, place.seqId, headers);
    operation.accepted(accepted.requestId);
    return accepted;
  } finally {
    session.forwardBackwardBytes.release(chunk.sizeBytes);
  }
}

/**
 * Repairs the order after a call of which the server has only some chunks. It runs requests strictly
 * by number and would wait for the missing ones for ever, so each gets a pass that changes nothing:
 * forward only, over one datum of an accepted chunk. Numbers after the last accepted chunk are free.
 */
async function fillGaps(
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
    sequence.next += lastAccepted + 1;
  } catch (error) {
    sequence.lose(`${operation.name} (seq_id ${firstSeqId} and following)`, error);
  }
}

/**
 * The error of a call with failed chunks; its message has what the server may have applied. A call of one
 * chunk fails with its own error, because there is nothing to add.
 */
function failedChunkError(
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
