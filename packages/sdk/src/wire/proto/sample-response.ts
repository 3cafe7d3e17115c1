import { WireError } from "../../errors/wire-error.js";
import type { SampledSequence, SampleResponse } from "../../types/sampling.js";
import type { WireInput } from "../wire-types.js";
import { MessageWriter } from "./message-writer.js";
import { bytesOf, PackedError, readFloat32, readInt32 } from "./packed.js";
import { atField } from "./tensor-codec.js";
import {
  readSampleResponse,
  StopReason,
  type SequenceMessage,
  type TopkMessage,
} from "./messages.js";

const typeName = "SampleResponse";
const stopReasons = new Map<number, string>([
  [StopReason.stop, "stop"],
  [StopReason.length, "length"],
]);
const emptyCell = { token: 0, logprob: -99999 };

/** The most probable tokens of one prompt position as (token id, logprob); null where not computed. */
type TopkRow = [number, number][] | null;

/** Encodes a sample result. */
export function encodeSampleResponse(
  response: WireInput<"SampleResponse">,
): Uint8Array<ArrayBuffer> {
  const writer = new MessageWriter();
  for (const sequence of response.sequences) writer.message(1, writeSequence(sequence));
  if (response.promptLogprobs) {
    const values = Float32Array.from(response.promptLogprobs, (value) => value ?? Number.NaN);
    writer.bytes(2, bytesOf(values), "send");
  }
  if (response.topkPromptLogprobs) writer.message(3, writeTopk(response.topkPromptLogprobs));
  return writer.uint(4, response.promptCacheHitTokens ?? 0).finish();
}

/** Decodes a sample result. */
export function decodeSampleResponse(bytes: Uint8Array): SampleResponse {
  const message = readSampleResponse(bytes);
  return {
    sequences: message.sequences.map((sequence, index) =>
      atField(typeName, `sequences[${index}]`, () => readSequence(sequence)),
    ),
    type: "sample",
    promptLogprobs: atField(typeName, "prompt_logprobs", () =>
      readPromptLogprobs(message.promptLogprobs),
    ),
    topkPromptLogprobs: atField(typeName, "topk_prompt_logprobs", () =>
      readTopk(message.topkPromptLogprobs),
    ),
    promptCacheHitTokens: message.promptCacheHitTokens,
  };
}

function writeSequence(sequence: WireInput<"SampleResponse">["sequences"][number]): MessageWriter {
  const { stopReason, tokens, logprobs } = sequence;
  if (stopReason !== "stop" && stopReason !== "length") {
    throw new WireError("encode", typeName, "stop_reason", `expected stop or length`);
  }
  const writer = new MessageWriter()
    .uint(1, stopReason === "stop" ? StopReason.stop : StopReason.length)
    .bytes(2, bytesOf(tokens instanceof Int32Array ? tokens : Int32Array.from(tokens)));
  if (logprobs) writer.bytes(3, bytesOf(Float32Array.from(logprobs)), "send");
  const top = sequence.unknownFields?.["top_logprobs"];
  if (Array.isArray(top)) writer.message(1001, writeTopk(top as TopkRow[]));
  return writer;
}

function readSequence(message: SequenceMessage): SampledSequence {
  const top = readTopk(message.topLogprobs);
  return {
    // A reason of a newer server has a number only.
    stopReason: stopReasons.get(message.stopReason) ?? `stop_reason_${String(message.stopReason)}`,
    tokens: readInt32(message.tokens),
    logprobs: isPresent(message.logprobs) ? new Float64Array(readFloat32(message.logprobs)) : null,
    // An addition of this project; in JSON it is a field that the API does not know.
    ...(top ? { unknownFields: { top_logprobs: top } } : undefined),
  };
}

function readPromptLogprobs(bytes: Uint8Array | undefined): (number | null)[] | null {
  if (!isPresent(bytes)) return null;
  return Array.from(readFloat32(bytes), (value) => (Number.isNaN(value) ? null : value));
}

function writeTopk(rows: NonNullable<WireInput<"SampleResponse">["topkPromptLogprobs"]>) {
  const k = Math.max(1, ...rows.map((row) => row?.length ?? 0));
  const tokenIds = new Int32Array(rows.length * k).fill(emptyCell.token);
  const logprobs = new Float32Array(rows.length * k).fill(emptyCell.logprob);
  rows.forEach((row, position) => {
    row?.forEach(([tokenId, logprob], rank) => {
      tokenIds[position * k + rank] = tokenId;
      logprobs[position * k + rank] = logprob;
    });
  });
  return new MessageWriter()
    .bytes(1, bytesOf(tokenIds))
    .bytes(2, bytesOf(logprobs))
    .uint(3, k)
    .uint(4, rows.length);
}

function readTopk(message: TopkMessage | undefined): TopkRow[] | null {
  if (!message || message.k === 0 || message.promptLength === 0) return null;
  const { k, promptLength } = message;
  const tokenIds = readInt32(message.tokenIds);
  const logprobs = readFloat32(message.logprobs);
  if (tokenIds.length !== promptLength * k || logprobs.length !== promptLength * k) {
    throw new PackedError(
      `expected ${promptLength} x ${k} cells, got ${tokenIds.length} ids and ${logprobs.length} logprobs`,
    );
  }
  const isEmpty = (cell: number): boolean =>
    tokenIds[cell] === emptyCell.token && logprobs[cell] === emptyCell.logprob;
  return Array.from({ length: promptLength }, (_, position) => {
    const start = position * k;
    let end = start + k;
    while (end > start && isEmpty(end - 1)) end--;
    if (end === start || isEmpty(start)) return null;
    return Array.from({ length: end - start }, (__, rank): [number, number] => [
      tokenIds[start + rank]!,
      logprobs[start + rank]!,
    ]);
  });
}

function isPresent(bytes: Uint8Array | undefined): bytes is Uint8Array {
  return bytes !== undefined && bytes.byteLength > 0;
}
