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

/** Whether a text is one value, or has one on each line. */
export type JsonForm = "whole" | "lines";

/** Lines of one body; others keep their places for the sake of their numbers. */
const maxLines = 10_000;

/** The texts of JSON in a body, none of which becomes more than the event loop has time for. */
export function readJson(bytes: Uint8Array, form: JsonForm): string[] {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new ApiError(400, "the body is not JSON: it is not UTF-8", { cause: error });
  }
  const texts = form === "whole" ? [text] : text.split("\n", maxLines + 2);
  // The last line ends as well.
  if (texts.at(-1)?.trim() === "" && texts.length > 1) texts.pop();
  if (texts.length > maxLines) throw badRequest("body", `at most ${maxLines} lines at a time`);
  for (const one of texts) checkText(one, maxParts[form]);
  return texts;
}

function checkText(text: string, most: number): void {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Reported by the reader, who knows which line it is.
    return;
  }
  checkSize(value, most);
}

/** Objects, lists, fields and texts of one value; lists of numbers are bounded by themselves. */
export const maxParts = { whole: 20_000, lines: 40_000 } as const;
const maxNumbers = 400_000;
/** Lists in lists, and objects in objects: they are followed by calls inside calls. */
const maxDepth = 1000;

/** Refuses a value of which the event loop would have to make a great many things. */
export function checkSize(value: unknown, most: number = maxParts.whole): void {
  let [parts, numbers] = [0, 0];
  const waiting: { readonly one: unknown; readonly depth: number }[] = [{ one: value, depth: 0 }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { one, depth } = next;
    if (typeof one !== "object" || one === null || ArrayBuffer.isView(one)) continue;
    const isList = Array.isArray(one);
    const inside: readonly unknown[] = isList ? one : Object.values(one);
    parts += 1 + (isList ? 0 : inside.length);
    for (const part of inside) {
      if (typeof part === "object" && part !== null) waiting.push({ one: part, depth: depth + 1 });
      else if (isList && typeof part === "number") numbers++;
      else if (isList) parts++;
    }
    if (parts > most || numbers > maxNumbers) {
      const limit = `at most ${most} objects, lists, fields and texts, and ${maxNumbers} numbers in lists`;
      throw new ApiError(413, `the JSON is too large: ${limit} are taken at a time`);
    }
    if (depth >= maxDepth) {
      const problem = `the JSON has more than ${maxDepth} lists and objects inside each other`;
      throw new ApiError(413, problem);
    }
  }
}
