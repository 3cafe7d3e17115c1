import {
  decodeJson,
  decodeProto,
  decompressZstd,
  hasProto,
  ModelInput,
  readRequestPlace,
  WireError,
  type Datum,
  type WireTypeName,
  type WireValue,
} from "tinker-ts/wire";
import { ApiError, badRequest } from "../errors/api-error.js";
import type { ServerLimits } from "../prices.js";
import { toReceivedPass, type ReceivedPass } from "./engine-pass.js";
import { InvalidBody } from "./invalid-body.js";

/** What the bytes of a body are, and how much may come out of them. */
export interface BodyForm {
  readonly typeName: WireTypeName;
  readonly form: "json" | "proto";
  readonly isCompressed: boolean;
  readonly limits: UnpackLimits;
}

/** Bounds on what a body may unfold to; they hold before the work that it would cause. */
export type UnpackLimits = Pick<
  ServerLimits,
  "maxDecompressedBytes" | "maxBatchData" | "maxPromptTokens"
>;

/** A decoded body. */
export interface DecodedBody {
  /** What is kept of a pass; of everything else the value of its type. */
  readonly value: unknown;
  /** The fields that are not known here; a newer client sends them. */
  readonly ignored: readonly string[];
}

/** Names of ignored fields that are kept of one body. */
const maxIgnored = 50;
const maxTelemetryEvents = 1000;
const maxTags = 1000;

/** Pieces of text and inputs of a loss that a datum of a large pass may have on average. */
const maxPartsPerDatum = 16;

/** A body that has arrived in parts. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [first, ...others] = parts;
  return first && others.length === 0 ? first : Buffer.concat(parts);
}

/** Unpacks and decodes a body. */
export async function decodeBody(received: Uint8Array, form: BodyForm): Promise<DecodedBody> {
  const bytes = form.isCompressed ? await unpack(received, form.limits) : received;
  const ignored = new Set<string>();
  const onIgnored = (field: string): void => {
    if (ignored.size < maxIgnored) ignored.add(field);
  };
  try {
    return { value: decode(bytes, form, onIgnored), ignored: [...ignored] };
  } catch (error) {
    const isMistake = error instanceof ApiError && error.status === 400;
    if (!isMistake && !(error instanceof WireError)) throw error;
    throw new InvalidBody(error.message, readRequestPlace(bytes, form.form));
  }
}

async function unpack(bytes: Uint8Array, limits: UnpackLimits): Promise<Uint8Array> {
  try {
    return await decompressZstd(bytes, limits.maxDecompressedBytes);
  } catch (error) {
    throw error instanceof WireError ? new ApiError(400, error.message, { cause: error }) : error;
  }
}

function decode(
  bytes: Uint8Array,
  { typeName, form, limits }: BodyForm,
  onIgnored: (field: string) => void,
): unknown {
  const options = { unknown: "ignore", isLenient: true, onIgnored } as const;
  if (typeName === "ForwardBackwardRequest") {
    const request =
      form === "json"
        ? decodeJson(typeName, bytes, options)
        : decodeProto(typeName, bytes, (field) => onIgnored(`field ${field}`));
    return keptPass(request, form === "proto" ? bytes : null, limits);
  }
  if (form === "proto") {
    if (!hasProto(typeName)) throw new ApiError(415, `${typeName} has no protobuf form; send JSON`);
    return decodeProto(typeName, bytes);
  }
  if (typeName === "ForwardRequest") {
    const { forwardInput, modelId, seqId } = decodeJson(typeName, bytes, options);
    const request = { forwardBackwardInput: forwardInput, modelId, seqId, forwardOnly: true };
    return keptPass(request, null, limits);
  }
  const value = decodeJson(typeName, bytes, options);
  if (typeName === "SampleRequest") {
    const request = value as WireValue<"SampleRequest">;
    for (const field of Object.keys(request.samplingParams.unknownFields ?? {})) {
      if (field !== "extensions") onIgnored(`sampling_params.${field}`);
    }
    return withJoinedPrompt(request, limits);
  }
  if (typeName === "TelemetrySendRequest") {
    const { events } = value as WireValue<"TelemetrySendRequest">;
    checkCount("events", events.length, maxTelemetryEvents);
  }
  if (typeName === "CreateSessionRequest") {
    const { tags } = value as WireValue<"CreateSessionRequest">;
    checkCount("tags", tags.length, maxTags);
  }
  return value;
}

/** What comes later costs by the number of parts and by dense values, so these are bounded here. */
function keptPass(
  request: WireValue<"ForwardBackwardRequest">,
  came: Uint8Array | null,
  limits: UnpackLimits,
): ReceivedPass {
  const { data } = request.forwardBackwardInput;
  const { maxBatchData, maxDecompressedBytes } = limits;
  if (data.length < 1 || data.length > maxBatchData) {
    const wanted = `must have at least 1 and at most ${maxBatchData} data`;
    throw badRequest("data", `${wanted}, got ${data.length}`);
  }
  if (data.reduce((sum, datum) => sum + partsOf(datum), 0) > maxPartsPerDatum * maxBatchData) {
    throw badRequest("data", "is made of too many small pieces; join chunks of text");
  }
  const denseBytes = data.reduce((sum, datum) => sum + denseBytesOf(datum), 0);
  if (denseBytes > maxDecompressedBytes) {
    const most = `more than ${maxDecompressedBytes}; send fewer data per request`;
    throw badRequest("data", `holds ${denseBytes} bytes of tokens and loss inputs, ${most}`);
  }
  return toReceivedPass(request, came);
}

function partsOf({ modelInput, lossFnInputs }: Datum): number {
  return modelInput.chunks.length + Object.keys(lossFnInputs).length;
}

/** Sparse inputs say how large they want to become. */
function denseBytesOf({ modelInput, lossFnInputs }: Datum): number {
  let values = 0;
  for (const chunk of modelInput.chunks) {
    if (chunk.type === "encoded_text") values += chunk.tokens.length;
  }
  for (const { data, isSparse, shape } of Object.values(lossFnInputs)) {
    values += isSparse ? (shape ?? []).reduce((product, size) => product * size, 1) : data.length;
  }
  return values * Float32Array.BYTES_PER_ELEMENT;
}

/** A text in one piece, however many it came in. */
function withJoinedPrompt(request: WireValue<"SampleRequest">, { maxPromptTokens }: UnpackLimits) {
  const { chunks } = request.prompt;
  if (chunks.length > maxPromptTokens) throw promptTooLong(chunks.length, maxPromptTokens);
  if (chunks.some(({ type }) => type !== "encoded_text")) return request;
  const tokens = request.prompt.toInts();
  if (tokens.length > maxPromptTokens) throw promptTooLong(tokens.length, maxPromptTokens);
  return chunks.length === 1 ? request : { ...request, prompt: ModelInput.fromInts(tokens) };
}

function promptTooLong(length: number, maxPromptTokens: number): ApiError {
  return badRequest("prompt", `has ${length} tokens; at most ${maxPromptTokens} are taken`);
}

function checkCount(field: string, count: number, most: number): void {
  if (count > most) throw badRequest(field, `has ${count} entries; at most ${most} are taken`);
}
