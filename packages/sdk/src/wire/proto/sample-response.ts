import { WireError } from "../../errors/wire-error.js";
import type { PromptAltTokens, SampledSequence, SampleResponse } from "../../types/sampling.js";
import { TensorData, type TensorDataInit } from "../../types/tensor-data.js";
import type { WireInput } from "../wire-types.js";
import { MessageWriter } from "./message-writer.js";
import {
  bytesOf,
  PackedError,
  readFloat32,
  readInt32,
  atField,
  emptyTensor,
  noBytes,
  readTensorMessage,
  toTensor,
  writeTensor,
  type TensorMessage,
} from "./tensor-codec.js";
import { MessageReader } from "./message-reader.js";

const typeName = "SampleResponse";
/** Reasons why a sequence ended, by their numbers. */
const stopReasons = ["stop", "length"];
const emptyCell = { token: 0, logprob: -99999 };

/** The most probable tokens of one position as (token id, logprob); null where not computed. */
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
  writer.uint(4, response.promptCacheHitTokens ?? 0);
  const { targetPromptLogprobs: targets, promptAltTokens: alternatives } = response;
  if (targets) writer.message(5, writeTensor(tensorOf(targets)));
  if (alternatives) {
    const message = new MessageWriter()
      .message(1, writeTensor(tensorOf(alternatives.tokens)))
      .message(2, writeTensor(tensorOf(alternatives.logprobs)));
    writer.message(6, message);
  }
  return writer.finish();
}

/** Decodes a sample result. */
export function decodeSampleResponse(bytes: Uint8Array): SampleResponse {
  const r = new MessageReader(bytes);
  const sequences: SequenceMessage[] = [];
  let promptLogprobs: Uint8Array | undefined;
  let topk: TopkMessage | undefined;
  let promptCacheHitTokens = 0;
  let targets: TensorMessage | undefined;
  let alternatives: AltTokensMessage | undefined;
  for (let field = r.next(); field >= 0; field = r.next()) {
    if (field === 1) r.messages(sequences, readSequence);
    else if (field === 2) promptLogprobs = r.bytes() ?? promptLogprobs;
    else if (field === 3) topk = r.message(readTopk) ?? topk;
    else if (field === 4) promptCacheHitTokens = r.int32() ?? promptCacheHitTokens;
    else if (field === 5) targets = r.message(readTensorMessage) ?? targets;
    else if (field === 6) alternatives = r.message(readAltTokens) ?? alternatives;
    else r.unknown(field);
  }
  return {
    sequences: sequences.map((sequence, index) =>
      atField(typeName, `sequences[${index}]`, () => toSequence(sequence)),
    ),
    type: "sample",
    promptLogprobs: atField(typeName, "prompt_logprobs", () => toPromptLogprobs(promptLogprobs)),
    topkPromptLogprobs: atField(typeName, "topk_prompt_logprobs", () => toTopkRows(topk)),
    promptCacheHitTokens,
    targetPromptLogprobs: atField(typeName, "target_prompt_logprobs", () =>
      targets ? toTensor(targets) : null,
    ),
    promptAltTokens: atField(typeName, "prompt_alt_tokens", () => toAltTokens(alternatives)),
  };
}

/** One sampled sequence. */
interface SequenceMessage {
  stopReason: number;
  tokens: Uint8Array;
  logprobs: Uint8Array | undefined;
  topkLogprobs: TopkMessage | undefined;
  topLogprobs: TopkMessage | undefined;
}

function readSequence(r: MessageReader): SequenceMessage {
  const message: SequenceMessage = {
    stopReason: 0,
    tokens: noBytes,
    logprobs: undefined,
    topkLogprobs: undefined,
    topLogprobs: undefined,
  };
  for (let field = r.next(); field >= 0; field = r.next()) {
    if (field === 1) message.stopReason = r.int32() ?? message.stopReason;
    else if (field === 2) message.tokens = r.bytes() ?? message.tokens;
    else if (field === 3) message.logprobs = r.bytes() ?? message.logprobs;
    else if (field === 4) message.topkLogprobs = r.message(readTopk) ?? message.topkLogprobs;
    else if (field === 1001) message.topLogprobs = r.message(readTopk) ?? message.topLogprobs;
    else r.unknown(field);
  }
  return message;
}

/** The most probable tokens of every position, of a prompt or of what was sampled. */
interface TopkMessage {
  tokenIds: Uint8Array;
  logprobs: Uint8Array;
  k: number;
  length: number;
}

function readTopk(r: MessageReader): TopkMessage {
  const message: TopkMessage = { tokenIds: noBytes, logprobs: noBytes, k: 0, length: 0 };
  for (let field = r.next(); field >= 0; field = r.next()) {
    if (field === 1) message.tokenIds = r.bytes() ?? message.tokenIds;
    else if (field === 2) message.logprobs = r.bytes() ?? message.logprobs;
    else if (field === 3) message.k = r.uint32() ?? message.k;
    else if (field === 4) message.length = r.uint32() ?? message.length;
    else r.unknown(field);
  }
  return message;
}

/** Alternatives to the tokens of a prompt. */
interface AltTokensMessage {
  tokens: TensorMessage;
  logprobs: TensorMessage;
}

function readAltTokens(r: MessageReader): AltTokensMessage {
  const message: AltTokensMessage = { tokens: emptyTensor, logprobs: emptyTensor };
  for (let field = r.next(); field >= 0; field = r.next()) {
    if (field === 1) message.tokens = r.message(readTensorMessage) ?? message.tokens;
    else if (field === 2) message.logprobs = r.message(readTensorMessage) ?? message.logprobs;
    else r.unknown(field);
  }
  return message;
}

function toAltTokens(message: AltTokensMessage | undefined): PromptAltTokens | null {
  if (!message) return null;
  return { tokens: toTensor(message.tokens), logprobs: toTensor(message.logprobs) };
}

function tensorOf(value: TensorData | TensorDataInit): TensorData {
  return value instanceof TensorData ? value : new TensorData(value);
}

function writeSequence(sequence: WireInput<"SampleResponse">["sequences"][number]): MessageWriter {
  const { stopReason, tokens, logprobs } = sequence;
  if (stopReason !== "stop" && stopReason !== "length") {
    throw new WireError("encode", typeName, "stop_reason", `expected stop or length`);
  }
  const writer = new MessageWriter()
    .uint(1, stopReasons.indexOf(stopReason))
    .bytes(2, bytesOf(tokens instanceof Int32Array ? tokens : Int32Array.from(tokens)));
  if (logprobs) writer.bytes(3, bytesOf(Float32Array.from(logprobs)), "send");
  if (sequence.topkLogprobs) writer.message(4, writeTopk(sequence.topkLogprobs));
  const top = sequence.unknownFields?.["top_logprobs"];
  if (Array.isArray(top)) writer.message(1001, writeTopk(top as TopkRow[]));
  return writer;
}

function toSequence(message: SequenceMessage): SampledSequence {
  const top = toTopkRows(message.topLogprobs);
  return {
    // A reason of a newer server has a number only.
    stopReason: stopReasons[message.stopReason] ?? `stop_reason_${String(message.stopReason)}`,
    tokens: readInt32(message.tokens),
    logprobs: isPresent(message.logprobs) ? new Float64Array(readFloat32(message.logprobs)) : null,
    topkLogprobs: toTopkRows(message.topkLogprobs),
    // An addition of this project; in JSON it is an unknown field.
    ...(top ? { unknownFields: { top_logprobs: top } } : undefined),
  };
}

function toPromptLogprobs(bytes: Uint8Array | undefined): (number | null)[] | null {
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

function toTopkRows(message: TopkMessage | undefined): TopkRow[] | null {
  if (!message || message.k === 0 || message.length === 0) return null;
  const { k, length } = message;
  const tokenIds = readInt32(message.tokenIds);
  const logprobs = readFloat32(message.logprobs);
  if (tokenIds.length !== length * k || logprobs.length !== length * k) {
    throw new PackedError(
      `expected ${length} x ${k} cells, got ${tokenIds.length} ids and ${logprobs.length} logprobs`,
    );
  }
  const isEmpty = (cell: number): boolean =>
    tokenIds[cell] === emptyCell.token && logprobs[cell] === emptyCell.logprob;
  return Array.from({ length }, (_, position) => {
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
