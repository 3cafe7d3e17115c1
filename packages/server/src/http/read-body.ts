import {
  decodeJson,
  decodeProto,
  decompressZstd,
  hasProto,
  WireError,
  type WireTypeName,
} from "tinker-ts/wire";
import { ApiError } from "../errors/api-error.js";
import type { BodyRoom } from "./body-budget.js";
import type { TurnBudget } from "./turn-budget.js";
import { UndecodableBody } from "./undecodable-body.js";

/** How large a body may be. */
export interface BodyLimits {
  readonly maxBodyBytes: number;
  readonly maxDecompressedBytes: number;
}

/** Reads, decompresses and decodes the body of a request; refuses what is too large before reading it. */
export async function readBody(
  request: Request,
  typeName: WireTypeName,
  limits: BodyLimits,
  room: BodyRoom,
  turns: TurnBudget,
): Promise<unknown> {
  const received = await readBytes(request, limits, room);
  await turns.enter();
  const bytes = await decompress(request, received, limits);
  if (bytes !== received) room.take(bytes.length);
  const mediaType = request.headers.get("content-type") ?? "application/json";
  const form = mediaType.includes("application/x-protobuf") ? "proto" : "json";
  try {
    if (form === "json") return decodeJson(typeName, bytes);
    if (!hasProto(typeName)) throw unsupported(`${typeName} has no protobuf form; send JSON`);
    return decodeProto(typeName, bytes);
  } catch (error) {
    throw error instanceof WireError ? new UndecodableBody(error, bytes, form) : error;
  }
}

async function readBytes(
  request: Request,
  limits: BodyLimits,
  room: BodyRoom,
): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null) {
    if (Number(declared) > limits.maxBodyBytes) throw tooLarge(limits.maxBodyBytes);
    room.take(Number(declared));
    return new Uint8Array(await request.arrayBuffer());
  }
  const parts: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const part of request.body ?? []) {
    sizeBytes += part.length;
    if (sizeBytes > limits.maxBodyBytes) throw tooLarge(limits.maxBodyBytes);
    room.take(part.length);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

async function decompress(
  request: Request,
  bytes: Uint8Array,
  limits: BodyLimits,
): Promise<Uint8Array> {
  const encoding = request.headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (encoding === "identity" || encoding === "") return bytes;
  if (encoding !== "zstd") {
    throw unsupported(`content-encoding ${encoding} is not known; use zstd or none`);
  }
  try {
    return await decompressZstd(bytes, limits.maxDecompressedBytes);
  } catch (error) {
    throw error instanceof WireError ? new ApiError(400, error.message, { cause: error }) : error;
  }
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError(
    413,
    `the body is larger than ${maxBytes} bytes; send fewer data per request`,
    // The rest of the body is not read, so the connection cannot be used again.
    { headers: { connection: "close" } },
  );
}

function unsupported(message: string): ApiError {
  return new ApiError(415, message);
}
