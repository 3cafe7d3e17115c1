import { APIConnectionError, statusError } from "../errors/api-error.js";
import type { Connection } from "../session/connection.js";

/** An answer whose body is read piece by piece. */
export interface ArchiveStream {
  /** Where it starts: at the byte that was asked for, or at the first when the server cannot resume. */
  readonly firstByte: number;
  /** Bytes still to come; null when the server does not say. */
  readonly remainingBytes: number | null;
  /** Names this very content, so that a resumed download cannot mix two of them. */
  readonly etag: string | null;
  readonly parts: AsyncIterable<Uint8Array>;
}

/** Opens an archive at its signed address, which needs no credential, from a byte on. */
export async function openArchive(
  connection: Connection,
  url: string,
  from: { readonly byte: number; readonly etag: string | null },
  signal: AbortSignal,
): Promise<ArchiveStream> {
  const headers: Record<string, string> = { "accept-encoding": "identity" };
  if (from.byte > 0) headers["range"] = `bytes=${from.byte}-`;
  if (from.byte > 0 && from.etag) headers["if-range"] = from.etag;
  const request = new Request(absolute(url, connection), { headers, signal });
  const response = await answer(connection, request).catch((cause: unknown) => {
    if (signal.aborted) throw signal.reason;
    throw new APIConnectionError("Could not download the checkpoint archive.", { cause });
  });
  if (!response.ok || !response.body) {
    throw statusError(response.status, { body: await response.text() });
  }
  const length = response.headers.get("content-length");
  return {
    firstByte: response.status === 206 ? firstByteOf(response.headers.get("content-range")) : 0,
    remainingBytes: length === null ? null : Number(length),
    etag: response.headers.get("etag"),
    parts: response.body,
  };
}

/** A part that does not say where it belongs belongs nowhere. */
function firstByteOf(contentRange: string | null): number {
  return Number(/^bytes (\d+)-/.exec(contentRange ?? "")?.[1] ?? Number.NaN);
}

/**
 * A `fetch` of the caller's stands for the whole network; the engine of this process answers for its own
 * addresses alone.
 */
function answer({ handler, baseUrl, plan }: Connection, request: Request): Promise<Response> {
  const isOwn = new URL(request.url).origin === baseUrl.origin;
  const isAnswered = handler && (isOwn || plan.options.fetch !== undefined);
  return isAnswered ? Promise.resolve(handler(request)) : fetch(request);
}

function absolute(url: string, { baseUrl }: Connection): string {
  return new URL(url, baseUrl.origin).href;
}
