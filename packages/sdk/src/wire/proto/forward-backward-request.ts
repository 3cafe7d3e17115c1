import { WireError } from "../../errors/wire-error.js";
import { decodeWith } from "../../schema/decode.js";
import { valuesOf } from "../../schema/node.js";
import { setOwn } from "../../schema/set-own.js";
import { Datum } from "../../types/datum.js";
import { ImageFormat, ModelInput, type ModelInputChunk } from "../../types/model-input.js";
import type { ProvenanceSpan } from "../../types/provenance.js";
import type { TensorData } from "../../types/tensor-data.js";
import { LossFnType, type ForwardBackwardRequest } from "../../types/training.js";
import type { WireInput } from "../wire-types.js";
import { MessageWriter } from "./message-writer.js";
import {
  bytesOf,
  readInt32,
  fieldError,
  emptyTensor,
  noBytes,
  readTensorMessage,
  toTensor,
  writeTensor,
  type TensorMessage,
} from "./tensor-codec.js";
import { MessageReader, type OnUnknownField } from "./message-reader.js";

const typeName = "ForwardBackwardRequest";
const lossFns = valuesOf(LossFnType);
const maxInt32 = 2 ** 31 - 1;
const sliceBytes = 1_000_000;
const encoder = new TextEncoder();

/** Encodes a forward or forward/backward request; token and weight arrays are copied exactly once. */
export function encodeForwardBackwardRequest(
  request: WireInput<"ForwardBackwardRequest">,
): Uint8Array<ArrayBuffer> {
  return writeRequest(request).finish();
}

/** The same in slices of a millisecond or so, with a `pause` for other work in between. */
export function encodeForwardBackwardRequestInSlices(
  request: WireInput<"ForwardBackwardRequest">,
  pause: () => Promise<void>,
): Promise<Uint8Array<ArrayBuffer>> {
  return writeRequest(request).finishInSlices(sliceBytes, pause);
}

function writeRequest(request: WireInput<"ForwardBackwardRequest">): MessageWriter {
  const { forwardBackwardInput: input, modelId, seqId, forwardOnly } = request;
  if (typeof modelId !== "string") fail("model_id", "this field is required but missing");
  if (!Array.isArray(input?.data)) fail("forward_backward_input.data", "expected a list");
  const writer = new MessageWriter();
  writer.string(1, modelId).uint(2, checkSeqId(seqId ?? 0));
  for (const [index, datum] of input.data.entries()) {
    writer.message(3, writeDatum(Datum.from(datum), index));
  }
  writer.string(4, toLossFn(input.lossFn, typeName));
  writeConfig(writer, input.lossFnConfig ?? {});
  return writer.uint(6, forwardOnly === true ? 1 : 0);
}

function toLossFn(value: unknown, name: string): LossFnType {
  return lossFns.has(value) ? (value as LossFnType) : decodeWith(LossFnType, name, value);
}

/** Texts have a newer field. It has all settings then, and the older one still has the numbers. */
function writeConfig(writer: MessageWriter, config: Readonly<Record<string, unknown>>): void {
  const entries = Object.entries(config);
  const hasText = entries.some(([, value]) => typeof value === "string");
  for (const [name, value] of entries) {
    const entry = (): MessageWriter => new MessageWriter().string(1, name);
    if (typeof value === "number") {
      writer.message(5, entry().double(2, value));
      if (hasText) writer.message(7, entry().message(2, new MessageWriter().double(1, value)));
    } else if (typeof value === "string") {
      const text = new MessageWriter().bytes(2, encoder.encode(value), "send");
      writer.message(7, entry().message(2, text));
    } else fail(`loss_fn_config.${name}`, "expected a number or text");
  }
}

/** Decodes a forward or forward/backward request; arrays are views on `bytes` where they can be. */
export function decodeForwardBackwardRequest(
  bytes: Uint8Array,
  onUnknown?: OnUnknownField,
): ForwardBackwardRequest {
  const r = new MessageReader(bytes, onUnknown);
  const data: DatumMessage[] = [];
  const numbers: Record<string, number> = {};
  const settings: Record<string, Setting> = {};
  let [modelId, seqId, lossFn, forwardOnly] = ["", 0, "", 0];
  for (let field = r.next(); field >= 0; field = r.next()) {
    if (field === 1) modelId = r.string() ?? modelId;
    else if (field === 2) seqId = r.int32() ?? seqId;
    else if (field === 3) r.messages(data, readDatum);
    else if (field === 4) lossFn = r.string() ?? lossFn;
    else if (field === 5) r.entry(numbers, 0);
    else if (field === 6) forwardOnly = r.int32() ?? forwardOnly;
    else if (field === 7) r.entry(settings, {}, readSetting);
    else r.unknown(field);
  }
  return {
    forwardBackwardInput: {
      data: data.map(toDatum),
      lossFn: toLossFn(lossFn, `${typeName}.loss_fn`),
      lossFnConfig: toConfig(numbers, settings),
    },
    modelId,
    seqId: seqId === 0 ? null : seqId,
    forwardOnly: forwardOnly !== 0,
  };
}

/** A setting of a loss; undefined when it has neither a number nor a text. */
interface Setting {
  value?: number | string | undefined;
}

function readSetting(r: MessageReader): Setting {
  const setting: Setting = {};
  for (let field = r.next(); field >= 0; field = r.next()) {
    if (field === 1) setting.value = r.double() ?? setting.value;
    else if (field === 2) setting.value = r.string() ?? setting.value;
    else r.unknown(field);
  }
  return setting;
}

interface DatumMessage {
  readonly chunks: ChunkMessage[];
  readonly lossFnInputs: Record<string, TensorMessage>;
}

/** A piece of an input: the tokens of a text, an image, or a sound. */
interface ChunkMessage {
  kind: "encoded_text" | "image" | "dmel" | undefined;
  bytes: Uint8Array;
  format: string;
  expectedTokens: number | null;
}

/** The kinds of pieces by their field numbers. */
const chunkKinds = [undefined, "encoded_text", "image", "dmel"] as const;

const emptyChunk: ChunkMessage = {
  kind: undefined,
  bytes: noBytes,
  format: "",
  expectedTokens: null,
};

function readDatum(r: MessageReader): DatumMessage {
  const message: DatumMessage = { chunks: [], lossFnInputs: {} };
  for (let field = r.next(); field >= 0; field = r.next()) {
    if (field === 1) r.messages(message.chunks, readChunk);
    else if (field === 2) r.entry(message.lossFnInputs, emptyTensor, readTensorMessage);
    // Where the tokens and the inputs come from: nothing is computed from it.
    else if (field === 3 || field === 4) r.skip();
    else r.unknown(field);
  }
  return message;
}
function readChunk(r: MessageReader): ChunkMessage {
  let chunk = emptyChunk;
  for (let field = r.next(); field >= 0; field = r.next()) {
    const kind = chunkKinds[field];
    if (kind === undefined) r.unknown(field);
    else {
      const message = r.message(kind === "image" ? readImage : readBytes);
      if (message) chunk = { ...message, kind };
    }
  }
  return chunk;
}

function readBytes(r: MessageReader): ChunkMessage {
  const message = { ...emptyChunk };
  for (let field = r.next(); field >= 0; field = r.next()) {
    if (field === 1) message.bytes = r.bytes() ?? message.bytes;
    else r.unknown(field);
  }
  return message;
}

function readImage(r: MessageReader): ChunkMessage {
  const message = { ...emptyChunk };
  for (let field = r.next(); field >= 0; field = r.next()) {
    if (field === 1) message.bytes = r.bytes() ?? message.bytes;
    else if (field === 2) message.format = r.string() ?? message.format;
    else if (field === 3) message.expectedTokens = r.int32() ?? message.expectedTokens;
    else r.unknown(field);
  }
  return message;
}

/** The newer field wins. What both have keeps the order of the older one, as servers before it have kept it. */
function toConfig(
  numbers: Record<string, number>,
  settings: Record<string, Setting>,
): Record<string, number | string> | null {
  const added = Object.keys(settings);
  if (added.length === 0) return Object.keys(numbers).length > 0 ? numbers : null;
  const names = Object.keys(numbers).filter((name) => Object.hasOwn(settings, name));
  const config: Record<string, number | string> = {};
  for (const name of new Set([...names, ...added])) {
    const value = settings[name]?.value;
    if (value === undefined) {
      fail(`loss_fn_config_v2.${name}`, "has neither a number nor a text", "decode");
    }
    setOwn(config, name, value);
  }
  return config;
}

function writeDatum(datum: Datum, index: number): MessageWriter {
  const writer = new MessageWriter();
  for (const chunk of datum.modelInput.chunks) writer.message(1, writeChunk(chunk, index));
  for (const [name, tensor] of Object.entries(datum.lossFnInputs)) {
    writer.message(2, new MessageWriter().string(1, name).message(2, writeTensor(tensor)));
  }
  for (const span of datum.provenance?.modelInput ?? []) writer.message(3, writeSpan(span));
  for (const span of datum.provenance?.lossFnInputs ?? []) writer.message(4, writeSpan(span));
  return writer;
}

function writeSpan({ kind, sequenceId, offset = 0, length }: ProvenanceSpan): MessageWriter {
  const span = new MessageWriter().string(1, sequenceId).uint(2, offset).uint(3, length);
  return new MessageWriter().message(kind === "prompt" ? 1 : 2, span);
}

function writeChunk(chunk: ModelInputChunk, datumIndex: number): MessageWriter {
  const writer = new MessageWriter();
  switch (chunk.type) {
    case "encoded_text":
      return writer.message(1, new MessageWriter().bytes(1, bytesOf(chunk.tokens)));
    case "image": {
      const image = new MessageWriter().bytes(1, chunk.data).string(2, chunk.format);
      if (chunk.expectedTokens !== null) {
        image.uint(3, checkExpectedTokens(chunk.expectedTokens, datumIndex), "send");
      }
      return writer.message(2, image);
    }
    case "dmel":
      return writer.message(3, new MessageWriter().bytes(1, chunk.dmel));
    case "image_asset_pointer":
      return fail(
        `data[${datumIndex}].model_input`,
        "an image asset pointer cannot be trained on; load the picture and pass an image chunk",
      );
  }
}

function toDatum({ chunks: pieces, lossFnInputs: tensors }: DatumMessage, index: number): Datum {
  const chunks: ModelInputChunk[] = [];
  const lossFnInputs: Record<string, TensorData> = {};
  let path = "";
  try {
    for (const piece of pieces) {
      path = `data[${index}].model_input[${chunks.length}]`;
      chunks.push(toChunk(piece));
    }
    for (const name of Object.keys(tensors)) {
      path = `data[${index}].loss_fn_inputs.${name}`;
      setOwn(lossFnInputs, name, toTensor(tensors[name]!));
    }
  } catch (error) {
    throw fieldError(error, typeName, path);
  }
  return new Datum({ modelInput: new ModelInput({ chunks }), lossFnInputs });
}

function toChunk({ kind: type, bytes, format, expectedTokens }: ChunkMessage): ModelInputChunk {
  switch (type) {
    case "encoded_text":
      return { type, tokens: readInt32(bytes) };
    case "image": {
      const known = decodeWith(ImageFormat, "ImageChunk.format", format);
      return { type, data: bytes, format: known, expectedTokens };
    }
    case "dmel":
      return { type, dmel: bytes };
    default:
      return fail("model_input", "the chunk is empty", "decode");
  }
}

function checkSeqId(seqId: number): number {
  if (Number.isInteger(seqId) && seqId >= 0 && seqId <= maxInt32) return seqId;
  return fail("seq_id", `expected an integer from 0 to ${maxInt32}, got ${seqId}`);
}

function checkExpectedTokens(count: number, datumIndex: number): number {
  if (Number.isInteger(count) && count >= 0 && count <= maxInt32) return count;
  return fail(`data[${datumIndex}].model_input`, `expected_tokens ${count} is not a count`);
}

function fail(path: string, problem: string, direction: "encode" | "decode" = "encode"): never {
  throw new WireError(direction, typeName, path, problem);
}
