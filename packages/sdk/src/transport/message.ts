import type { Cancellation } from "../runtime/cancellation.js";
import type { Pool } from "../wire/routes.js";

/** Header names are lower case throughout. */
export type Headers = Readonly<Record<string, string>>;

/** One HTTP request, with everything that the layers around the socket need to know. */
export interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** `https://host:port` */
  readonly origin: string;
  /** Path and query below the origin. */
  readonly path: string;
  /** The same object for all requests to an endpoint, so that it is put in order only once. */
  readonly commonHeaders: Headers;
  /** Headers of this request; they win over the common ones. */
  readonly headers: Headers;
  readonly body: string | Uint8Array | null;
  /** How many attempts went before this one. */
  readonly retryCount: number;
  readonly pool: Pool;
  /** Longest silence: until the answer begins, and between its parts. */
  readonly timeoutMs: number;
  /** Nobody waits for it, so it must not keep the process alive. */
  readonly isBackground: boolean;
  readonly followsRedirects: boolean;
  readonly signal: Cancellation | undefined;
}

/** A complete answer. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
  /** From the first byte of the answer to the last. */
  readonly downloadMs: number;
}

/** Exchanges one request for its answer; rejects when no complete answer arrives. */
export type Send = (request: HttpRequest) => Promise<HttpResponse>;

/** A `Send` that owns something (sockets) which must be given back. */
export interface Transport {
  readonly send: Send;
  /** Ends every request under way and frees all sockets. */
  readonly close: () => Promise<void>;
}

/** The request as errors tell of it; without credentials. */
export function describeRequest(request: HttpRequest): { method: string; url: string } {
  return { method: request.method, url: request.origin + request.path };
}
