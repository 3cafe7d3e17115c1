import {
  ArgumentError,
  encodeJson,
  stringifyJson,
  WireError,
  type WireInput,
  type WireTypeName,
} from "tinker-ts/wire";
import { ApiError, unavailable } from "../errors/api-error.js";
import type { LoopTurns } from "../loop-turns.js";
import { randomBytes } from "node:crypto";
import { isStorageFailure } from "../errors/storage-failure.js";
import { withoutDataDir } from "../errors/without-data-dir.js";
import type { Logger } from "../log/logger.js";

/** A JSON answer, always with its length: clients take a 400 without one for a broken proxy. */
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

/** An encoded answer. */
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

/** The part of an error that a client may see; undefined when only the log may have it. */
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

/** Converts an error to an answer. */
export type RenderError = (error: ApiError) => Response;

/** What errors are answered with. */
export interface ErrorContext {
  readonly logger: Logger;
  /** Its signal is aborted when the client goes away; it is made on demand. */
  readonly request: Pick<Request, "signal">;
  /** Its path is removed from answers. */
  readonly dataDir: string;
}

/** Turns what a handler throws into an answer; unexpected errors are logged in full and answered without detail. */
export async function answerErrors(
  { logger, request, dataDir }: ErrorContext,
  answer: () => Promise<Response>,
  render: RenderError = refusalResponse,
): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    if (request.signal.aborted) {
      // The client is gone, so this answer is not read.
      logger.info("a client went away in the middle of a request");
      return render(new ApiError(400, "the client went away", { code: "aborted" }));
    }
    return render(withoutFolder(toRefusal(error, logger), dataDir));
  }
}

function withoutFolder(error: ApiError, dataDir: string): ApiError {
  const message = withoutDataDir(error.message, dataDir);
  const { status, code, headers } = error;
  return message === error.message ? error : new ApiError(status, message, { code, headers });
}

/** What a client gets to see of anything that was thrown. */
export function toRefusal(error: unknown, logger: Logger): ApiError {
  const known = refusal(error);
  if (known) return known;
  if (isStorageFailure(error)) {
    logger.error("cannot write to the data directory", { error: error.message });
    return unavailable("the server cannot write to its disk at the moment");
  }
  const reference = randomBytes(4).toString("hex");
  logger.error("unexpected error", {
    reference,
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
  const text = `something went wrong in the server; its log has the details under ${reference}`;
  return new ApiError(500, text, { code: "internal" });
}
