import { WireError } from "../../errors/wire-error.js";
import { decodeWith } from "../../schema/decode.js";
import { setOwn } from "../../schema/set-own.js";
import { Datum } from "../../types/datum.js";
import { ImageFormat, ModelInput, type ModelInputChunk } from "../../types/model-input.js";
import type { TensorData } from "../../types/tensor-data.js";
import { LossFnType, type ForwardBackwardRequest } from "../../types/training.js";
import type { WireInput } from "../wire-types.js";
import { MessageWriter } from "./message-writer.js";
import { bytesOf, readInt32 } from "./packed.js";
import { atField, readTensor, writeTensor } from "./tensor-codec.js";
import { readForwardBackwardRequest, type ChunkMessage, type DatumMessage } from "./messages.js";

const typeName = "ForwardBackwardRequest";
const maxInt32 = 2 ** 31 - 1;
const sliceBytes = 1_000_000;

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
  input.data.forEach((datum, index) => writer.message(3, writeDatum(Datum.from(datum), index)));
  writer.string(4, decodeWith(LossFnType, typeName, input.lossFn));
  for (const [name, value] of Object.entries(input.lossFnConfig ?? {})) {
    if (typeof value !== "number") fail(`loss_fn_config.${name}`, "expected a number");
    writer.message(5, new MessageWriter().string(1, name).double(2, value));
  }
  return writer.bool(6, forwardOnly === true);
}

/** Decodes a forward or forward/backward request; arrays are views on `bytes` where they can be. */
export function decodeForwardBackwardRequest(bytes: Uint8Array): ForwardBackwardRequest {
  const message = readForwardBackwardRequest(bytes);
  const hasConfig = Object.keys(message.lossFnConfig).length > 0;
  return {
    forwardBackwardInput: {
      data: message.data.map(readDatum),
      lossFn: atField(typeName, "loss_fn", () =>
        decodeWith(LossFnType, `${typeName}.loss_fn`, message.lossFn),
      ),
      lossFnConfig: hasConfig ? message.lossFnConfig : null,
    },
    modelId: message.modelId,
    seqId: message.seqId === 0 ? null : message.seqId,
    forwardOnly: message.forwardOnly,
  };
}

function writeDatum(datum: Datum, index: number): MessageWriter {
  const writer = new MessageWriter();
  for (const chunk of datum.modelInput.chunks) writer.message(1, writeChunk(chunk, index));
  for (const [name, tensor] of Object.entries(datum.lossFnInputs)) {
    writer.message(2, new MessageWriter().string(1, name).message(2, writeTensor(tensor)));
  }
  return writer;
}

function writeChunk(chunk: ModelInputChunk, datumIndex: number): MessageWriter {
  const writer = new MessageWriter();
  switch (chunk.type) {
    case "encoded_text":
      return writer.message(1, new MessageWriter().bytes(1, bytesOf(chunk.tokens)));
    case "image": {
      const image = new MessageWriter().bytes(1, chunk.data).string(2, chunk.format);
      if (chunk.expectedTokens !== null) {
        image.presentUint(3, checkExpectedTokens(chunk.expectedTokens, datumIndex));
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

function readDatum(message: DatumMessage, index: number): Datum {
  const path = `data[${index}]`;
  const chunks = message.modelInput.map((chunk, position) =>
    atField(typeName, `${path}.model_input[${position}]`, () => readChunk(chunk)),
  );
  const lossFnInputs: Record<string, TensorData> = {};
  for (const [name, tensor] of Object.entries(message.lossFnInputs)) {
    const value = atField(typeName, `${path}.loss_fn_inputs.${name}`, () => readTensor(tensor));
    setOwn(lossFnInputs, name, value);
  }
  return new Datum({ modelInput: new ModelInput({ chunks }), lossFnInputs });
}

function readChunk({ chunk }: ChunkMessage): ModelInputChunk {
  switch (chunk.case) {
    case "encodedText":
      return { type: "encoded_text", tokens: readInt32(chunk.value.tokens) };
    case "image":
      return {
        type: "image",
        data: chunk.value.data,
        format: decodeWith(ImageFormat, "ImageChunk.format", chunk.value.format),
        expectedTokens: chunk.value.expectedTokens ?? null,
      };
    case "dmel":
      return { type: "dmel", dmel: chunk.value.dmel };
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
