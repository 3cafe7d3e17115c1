import { APIConnectionError, APIResponseValidationError } from "../errors/api-error.js";
import { WireError } from "../errors/wire-error.js";
import { abortable } from "../runtime/cancellation.js";
import { tooLargeError } from "./answer-bounds.js";
import { describeRequest, type HttpRequest, type HttpResponse } from "./message.js";

/** Encodings offered to servers. */
export const acceptedEncodings = "gzip, deflate, br";

/** Names under which servers send a body as it is. */
const plainEncodings = new Set(["", "identity", "none"]);

type Unpack = (packed: Uint8Array) => Promise<Uint8Array>;

/**
 * Unpacks answers that the server compressed; one that does not unpack was damaged on its way. Streamed
 * answers are left as they are: callers that want one ask for it unpacked.
 */
export function decompress(
  response: HttpResponse,
  request: HttpRequest,
): HttpResponse | Promise<HttpResponse> {
  const encoding = response.headers["content-encoding"];
  if (encoding === undefined || response.parts) return response;
  const steps = encoding
    .split(",")
    .map((step) => step.trim().toLowerCase())
    .filter((step) => !plainEncodings.has(step));
  if (steps.length === 0) return response;
  return abortable(unpack(response, request, steps), request.signal).catch((cause: unknown) => {
    request.signal?.throwIfAborted();
    if (cause instanceof APIResponseValidationError) throw cause;
    throw new APIConnectionError(`Connection error: the answer's ${encoding} data is broken.`, {
      cause,
      request: describeRequest(request),
    });
  });
}

async function unpack(
  response: HttpResponse,
  request: HttpRequest,
  steps: readonly string[],
): Promise<HttpResponse> {
  const unpackers = await loadUnpackers(request.maxAnswerBytes);
  let { body } = response;
  for (const step of steps.toReversed()) {
    const unpackStep = Object.hasOwn(unpackers, step) ? unpackers[step] : undefined;
    if (!unpackStep) throw new Error(`unknown content encoding ${step}`);
    if (body.byteLength === 0) continue;
    body = await unpackStep(body).catch((error: unknown) => {
      throw isTooLarge(error) ? tooLargeError(request, response.status) : error;
    });
  }
  return { ...response, body };
}

async function loadUnpackers(maxBytes: number): Promise<Readonly<Record<string, Unpack>>> {
  const { promisify } = await import("node:util");
  const zlib = await import("node:zlib");
  const { decompressZstd } = await import("../wire/zstd.js");
  const limit = { maxOutputLength: maxBytes };
  const gunzip: Unpack = (packed) => promisify(zlib.gunzip)(packed, limit);
  const inflate: Unpack = (packed) => promisify(zlib.inflate)(packed, limit);
  const inflateRaw: Unpack = (packed) => promisify(zlib.inflateRaw)(packed, limit);
  return {
    gzip: gunzip,
    "x-gzip": gunzip,
    // Some servers mean the bare algorithm, without the frame that the name implies.
    deflate: (packed) => (hasZlibFrame(packed) ? inflate(packed) : inflateRaw(packed)),
    br: (packed) => promisify(zlib.brotliDecompress)(packed, limit),
    zstd: (packed) => decompressZstd(packed, maxBytes),
  };
}

function hasZlibFrame([first = 0, second = 0]: Uint8Array): boolean {
  return (first & 0x0f) === 8 && (first * 256 + second) % 31 === 0;
}

function isTooLarge(error: unknown): boolean {
  if (error instanceof WireError) return error.problem.includes("larger than");
  return (error as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE";
}
