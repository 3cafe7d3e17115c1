import { ArgumentError } from "../../errors/argument-error.js";
import { CancelledError } from "../../errors/cancelled-error.js";
import type { Operation } from "../../futures/operation.js";
import { Canceller, onAbort } from "../../runtime/cancellation.js";
import type { Turn } from "../../runtime/turn-line.js";
import { decodeWith } from "../../schema/decode.js";
import { Datum, type DatumLike } from "../../types/datum.js";
import { LossFnType, type ForwardBackwardOutput } from "../../types/training.js";
import { chunkData, type DataChunk } from "./chunk-data.js";
import { combineOutputs } from "./combine-outputs.js";
import { failedChunkError } from "./failed-chunk.js";
import { withLossValue } from "./loss-value.js";
import { submitPass, type PassFrame } from "./submit-pass.js";
import type { TrainingRun } from "./training-run.js";

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
  const { config } = run.session.connection;
  return {
    frame: { modelId: run.modelId, lossFn, lossFnConfig: lossFnConfig ?? null, isForwardOnly },
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
  onAccepted?: () => void,
  turn: Turn = run.sequence.takeTurn(),
): Promise<ForwardBackwardOutput> {
  const startedAt = run.session.runtime.clock.now();
  const accepted = await submitPass(run, operation, turn, frame, chunks, onAccepted);
  const roundTripMs = run.session.runtime.clock.now() - startedAt;
  const requestType = frame.isForwardOnly ? "Forward" : "ForwardBackward";
  // One failed chunk fails the call, so nobody needs to go on waiting for the others.
  const waiting = new Canceller();
  const stopListening = onAbort(operation.signal, (reason) => waiting.abort(reason));
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
    stopListening();
  }
}

function checkLossFn(
  lossFn: LossFnType,
  lossFnConfig: Readonly<Record<string, number>> | undefined,
): void {
  try {
    decodeWith(LossFnType, "lossFn", lossFn);
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
