import { APIConnectionError } from "../errors/api-error.js";
import { describeRequest, type HttpResponse, type Send } from "./message.js";

/** Encodings offered to servers. */
export const acceptedEncodings = "gzip, deflate, br";

/** Most bytes that an answer may unpack to. */
const maxUnpackedBytes = 2 ** 31 - 1;

type Unpack = (packed: Uint8Array) => Promise<Uint8Array>;

/** Unpacks answers that the server compressed; one that does not unpack was damaged on its way. */
export function withDecompression(send: Send): Send {
  return (request) =>
    send(request).then((response) => {
      const encoding = response.headers["content-encoding"];
      if (encoding === undefined || encoding === "identity") return response;
      return unpack(response, encoding).catch((cause: unknown) => {
        throw new APIConnectionError(`Connection error: the answer's ${encoding} data is broken.`, {
          cause,
          request: describeRequest(request),
        });
      });
    });
}

async function unpack(response: HttpResponse, encoding: string): Promise<HttpResponse> {
  const { promisify } = await import("node:util");
  const zlib = await import("node:zlib");
  const { decompressZstd } = await import("../wire/zstd.js");
  const limit = { maxOutputLength: maxUnpackedBytes };
  const gunzip: Unpack = (packed) => promisify(zlib.gunzip)(packed, limit);
  const unpackers: Readonly<Record<string, Unpack>> = {
    gzip: gunzip,
    "x-gzip": gunzip,
    deflate: (packed) => promisify(zlib.inflate)(packed, limit),
    br: (packed) => promisify(zlib.brotliDecompress)(packed, limit),
    zstd: (packed) => decompressZstd(packed, maxUnpackedBytes),
  };
  let { body } = response;
  const steps = encoding.split(",").map((step) => step.trim().toLowerCase());
  for (const step of steps.toReversed()) {
    const unpackStep = Object.hasOwn(unpackers, step) ? unpackers[step] : undefined;
    if (!unpackStep) throw new Error(`unknown content encoding ${step}`);
    if (body.byteLength > 0) body = await unpackStep(body);
  }
  return { ...response, body };
}
