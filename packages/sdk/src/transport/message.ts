import type { Cancellation } from "../runtime/cancellation.js";
import type { Pool } from "../wire/routes.js";

/** Header names are lower case throughout. */
export type Headers = Readonly<Record<string, string>>;

/** A body that is made while it is sent; called anew for every attempt. */
export type UploadParts = () => AsyncIterable<Uint8Array>;

/** What a request carries. */
export type RequestBody = string | Uint8Array | UploadParts;

/** One HTTP request, with everything that the layers around the socket use. */
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
  readonly body: RequestBody | null;
  /** Identifies attempts of one request; null where a repeat does no harm. */
  readonly idempotencyKey: string | null;
  /** How many attempts went before this one. */
  readonly retryCount: number;
  readonly pool: Pool;
  /** Longest silence: until the answer begins, and between its parts. */
  readonly timeoutMs: number;
  /** Most bytes of an answer that is read as a whole, as they arrive and unpacked. */
  readonly maxAnswerBytes: number;
  /** The parts of a good answer are delivered as they arrive; any other is read as a whole. */
  readonly streams: boolean;
  /** No caller waits for it, so it must not keep the process alive. */
  readonly isBackground: boolean;
  readonly followsRedirects: boolean;
  readonly signal: Cancellation | undefined;
}

/** An answer: complete, or complete up to its body. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Headers;
  /** Empty when the answer is streamed. */
  readonly body: Uint8Array;
  /** From the first byte of the answer to the last. */
  readonly downloadMs: number;
  /** The body of a streamed answer, to be read once; stopping early closes the connection. */
  readonly parts?: AsyncIterable<Uint8Array>;
}

/** Exchanges one request for its answer; rejects when no complete answer arrives. */
export type Send = (request: HttpRequest) => Promise<HttpResponse>;

/** A `Send` that owns something (sockets) which must be given back. */
export interface Transport {
  readonly send: Send;
  /** Ends every request under way and frees all sockets. */
  readonly close: () => Promise<void>;
}

/** The request as errors show it, without credentials. */
export function describeRequest(request: HttpRequest): { method: string; url: string } {
  return { method: request.method, url: request.origin + request.path };
}

/** True for a 400 without a body or without a length: it comes from a proxy, not from the API. */
export function isEmptyBadRequest({ status, headers }: HttpResponse): boolean {
  const length = headers["content-length"];
  return status === 400 && (length === undefined || length === "0");
}

/** True for a status of 2xx. */
export function isSuccess({ status }: Pick<HttpResponse, "status">): boolean {
  return status >= 200 && status < 300;
}
