import { APIConnectionError, APIError } from "../errors/api-error.js";
import { onAbort } from "../runtime/cancellation.js";
import type { CancelTimer, Clock } from "../runtime/clock.js";
import { silenceError, slowestAnswerBytesPerMs, tooLargeError } from "./answer-bounds.js";
import {
  describeRequest,
  isSuccess,
  type Headers as PlainHeaders,
  type HttpRequest,
  type HttpResponse,
  type RequestBody,
  type Transport,
} from "./message.js";

/** Answers a request in place of the network: `fetch`, a server in this process, a test. */
export type FetchHandler = (request: Request) => Promise<Response> | Response;

/** Sends through a handler instead of over sockets. */
export function openFetchTransport(handler: FetchHandler, clock: Clock): Transport {
  const underWay = new Set<AbortController>();
  const send = async (request: HttpRequest): Promise<HttpResponse> => {
    request.signal?.throwIfAborted();
    const exchange = new FetchExchange(handler, request, clock, underWay);
    return exchange.run();
  };
  return {
    send,
    close: () => {
      for (const controller of underWay) controller.abort(new Error("the client was closed"));
      return Promise.resolve();
    },
  };
}

/**
 * One request through a handler. A handler need not listen to the request's signal, so every wait for it
 * ends with the signal by itself.
 */
class FetchExchange {
  readonly #handler: FetchHandler;
  readonly #request: HttpRequest;
  readonly #clock: Clock;
  readonly #underWay: Set<AbortController>;
  readonly #controller = new AbortController();
  readonly #stopListening: () => void;
  #cancelTimer: CancelTimer = () => {};
  #hasBegun = false;

  constructor(
    handler: FetchHandler,
    request: HttpRequest,
    clock: Clock,
    underWay: Set<AbortController>,
  ) {
    this.#handler = handler;
    this.#request = request;
    this.#clock = clock;
    this.#underWay = underWay;
    underWay.add(this.#controller);
    this.#stopListening = onAbort(request.signal, (reason) => this.#controller.abort(reason));
  }

  async run(): Promise<HttpResponse> {
    let isHandedOn = false;
    try {
      this.#watchForSilence();
      const response = await this.#within(
        Promise.resolve(this.#handler(toFetchRequest(this.#request, this.#controller.signal))),
      );
      this.#hasBegun = true;
      const { status } = response;
      const headers = headersOf(response);
      if (this.#request.streams && isSuccess(response)) {
        isHandedOn = true;
        return {
          status,
          headers,
          body: new Uint8Array(),
          downloadMs: 0,
          parts: this.#parts(response),
        };
      }
      return await this.#collect(response, headers);
    } catch (error) {
      throw this.#toError(error);
    } finally {
      if (!isHandedOn) this.#end();
    }
  }

  async #collect(response: Response, headers: Record<string, string>): Promise<HttpResponse> {
    const { status } = response;
    const { maxAnswerBytes, timeoutMs } = this.#request;
    const answeredAt = this.#clock.now();
    const parts: Uint8Array[] = [];
    let receivedBytes = 0;
    for await (const part of this.#read(response)) {
      receivedBytes += part.byteLength;
      if (receivedBytes > maxAnswerBytes) throw tooLargeError(this.#request, status);
      const tookMs = this.#clock.now() - answeredAt;
      if (tookMs > timeoutMs + receivedBytes / slowestAnswerBytesPerMs) {
        throw silenceError(this.#request, "too little of its answer", tookMs, true);
      }
      parts.push(part);
    }
    const body = parts.length === 1 ? parts[0]! : joined(parts, receivedBytes);
    // A handler's answer has no frame with a length; what arrived is complete.
    headers["content-length"] ??= String(receivedBytes);
    return { status, headers, body, downloadMs: this.#clock.now() - answeredAt };
  }

  async *#parts(response: Response): AsyncGenerator<Uint8Array, undefined> {
    try {
      yield* this.#read(response);
    } catch (error) {
      throw this.#toError(error);
    } finally {
      this.#end();
    }
    return undefined;
  }

  async *#read({ body }: Response): AsyncGenerator<Uint8Array, undefined> {
    if (!body) return undefined;
    const reader = body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    let isDone = false;
    try {
      for (;;) {
        this.#watchForSilence();
        const { done, value } = await this.#within(reader.read());
        this.#cancelTimer();
        isDone = done;
        if (done) return undefined;
        yield value;
      }
    } finally {
      if (!isDone) void reader.cancel(this.#controller.signal.reason).catch(() => {});
    }
  }

  #watchForSilence(): void {
    this.#cancelTimer();
    const { timeoutMs } = this.#request;
    this.#cancelTimer = this.#clock.schedule(timeoutMs, () => {
      const what = this.#hasBegun ? "no further part of its answer" : "no answer";
      this.#controller.abort(silenceError(this.#request, what, timeoutMs, true));
    });
  }

  /** Waits until the exchange is aborted at the latest. */
  #within<T>(promise: Promise<T>): Promise<T> {
    const { signal } = this.#controller;
    return new Promise((resolve, reject) => {
      const stop = onAbort(signal, reject);
      promise.finally(stop).then(resolve, reject);
    });
  }

  #toError(error: unknown): unknown {
    const { signal } = this.#controller;
    if (signal.aborted) return signal.reason;
    if (error instanceof APIError) return error;
    const message = error instanceof Error ? error.message : String(error);
    return new APIConnectionError(`Connection error: ${message}`, {
      cause: error,
      request: describeRequest(this.#request),
    });
  }

  #end(): void {
    this.#underWay.delete(this.#controller);
    this.#cancelTimer();
    this.#stopListening();
  }
}

function toFetchRequest(request: HttpRequest, signal: AbortSignal): Request {
  const { method, origin, path, commonHeaders, headers, body } = request;
  const { retryCount, idempotencyKey } = request;
  return new Request(origin + path, {
    method,
    headers: {
      ...commonHeaders,
      ...(idempotencyKey === null ? undefined : { "x-idempotency-key": idempotencyKey }),
      ...headers,
      "x-stainless-retry-count": String(retryCount),
    },
    redirect: "manual",
    signal,
    ...toFetchBody(body),
  });
}

/** A stream can only be sent while nothing is expected back, which fetch expects as `duplex`. */
function toFetchBody(body: RequestBody | null): RequestInit {
  if (typeof body !== "function") return { body };
  const parts = body()[Symbol.asyncIterator]();
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await parts.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: async () => void (await parts.return?.()),
  });
  return { body: stream, duplex: "half" };
}

/** `fetch` has unpacked what it received, but keeps the headers that say how it was packed. */
function headersOf(response: Response): Record<string, string> {
  const headers: Record<string, string> = Object.fromEntries(response.headers);
  const isFromNetwork = response.url !== "";
  if (isFromNetwork && headers["content-encoding"] !== undefined) {
    delete headers["content-encoding"];
    delete headers["content-length"];
  }
  return headers satisfies PlainHeaders;
}

function joined(parts: readonly Uint8Array[], sizeBytes: number): Uint8Array {
  const whole = new Uint8Array(sizeBytes);
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.byteLength;
  }
  return whole;
}
