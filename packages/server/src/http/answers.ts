import {
  ArgumentError,
  encodeJson,
  stringifyJson,
  WireError,
  type WireInput,
  type WireTypeName,
} from "tinker-ts/wire";
import { ApiError } from "../errors/api-error.js";
import type { LoopTurns } from "../loop-turns.js";

/** A JSON answer; its length is always told, because clients take a 400 without one for a broken proxy. */
export function jsonResponse(
  json: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const bytes = Buffer.from(stringifyJson(json));
  return new Response(bytes, {
    status,
    headers: {
      "content-type": "application/json",
      "content-length": String(bytes.length),
      ...headers,
    },
  });
}

/** How deep values are written part by part; what lies deeper is short, such as an entry of a list. */
const maxPartDepth = 5;
/** Length of text between two turns of the event loop at most. */
const sliceLength = 1 << 16;

/** A JSON answer of any size, written in slices. */
export async function largeJsonResponse(
  loop: LoopTurns,
  owner: string,
  json: unknown,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  const parts: string[] = [];
  let length = 0;
  const write = (text: string): void => {
    length += text.length;
    parts.push(text);
  };
  function* writeParts(value: unknown, depth: number): Generator<void, void, void> {
    if (length > sliceLength) {
      length = 0;
      yield;
    }
    if (typeof value !== "object" || value === null || depth >= maxPartDepth) {
      write(stringifyJson(value ?? null));
      return;
    }
    const isList = Array.isArray(value);
    const entries = Object.entries(value).filter(([, one]) => isList || one !== undefined);
    write(isList ? "[" : "{");
    for (const [index, [name, one]] of entries.entries()) {
      write(`${index > 0 ? "," : ""}${isList ? "" : `${JSON.stringify(name)}:`}`);
      yield* writeParts(one, depth + 1);
    }
    write(isList ? "]" : "}");
  }
  await loop.run(owner, writeParts(json, 0));
  const bytes = parts.map((part) => Buffer.from(part));
  return bytesResponse(Buffer.concat(bytes), "application/json", headers);
}

/** The JSON answer of a wire type. */
export function typedResponse<N extends WireTypeName>(
  typeName: N,
  value: WireInput<N>,
  status = 200,
): Response {
  return jsonResponse(encodeJson(typeName, value), status);
}

/** An answer whose bytes are ready. */
export function bytesResponse(
  bytes: Uint8Array,
  mediaType: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(bytes as Uint8Array<ArrayBuffer>, {
    headers: { "content-type": mediaType, "content-length": String(bytes.length), ...headers },
  });
}

/** An answer without a body. */
export function emptyResponse(): Response {
  return new Response(null, { status: 204 });
}

/** What a client gets to see of an error, or undefined when it is nobody's business but the log's. */
export function refusal(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error;
  if (error instanceof WireError && error.direction === "decode") {
    return new ApiError(400, error.message, { cause: error });
  }
  if (error instanceof ArgumentError) {
    // Its fields are spelt as in TypeScript; a client of the API knows them by their wire names.
    const field = error.field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    return new ApiError(400, error.message.replace(error.field, field), { cause: error });
  }
  return undefined;
}

/** The answer for a refusal. */
export function refusalResponse(error: ApiError): Response {
  return jsonResponse({ error: error.message, code: error.code }, error.status, error.headers);
}
