import type { Dispatcher } from "undici";
import { APIConnectionError, APITimeoutError } from "../errors/api-error.js";
import { onAbort } from "../runtime/cancellation.js";
import type { CancelTimer, Clock } from "../runtime/clock.js";
import type { Lease } from "./connection-pool.js";
import { headerList } from "./header-list.js";
import { describeRequest, type HttpRequest, type HttpResponse } from "./message.js";

/** A request that got no answer for this long is parked. */
const parkAfterMs = 100;

/** Uploads may be this slow before the wait for the answer counts as silence. */
const slowestUploadBytesPerMs = 64;

/**
 * One request on a leased connection. Implements undici's handler directly: building a stream and an
 * abort signal per answer, as `request` and `fetch` do, costs more than the exchange itself.
 *
 * One timer serves two purposes in turn: first it parks the request, then it watches for silence.
 * Activity only notes the time; the timer looks at the note when it fires and sleeps on.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly answer: Promise<HttpResponse>;
  readonly #request: HttpRequest;
  readonly #lease: Lease;
  readonly #clock: Clock;
  readonly #isUsableAfter: (response: HttpResponse) => boolean;
  readonly #parts: Uint8Array[] = [];
  readonly #stopListening: () => void;
  #settle!: { resolve: (response: HttpResponse) => void; reject: (error: unknown) => void };
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: Record<string, string> = {};
  #answeredAt = 0;
  #isOver = false;
  #quietSince: number;
  #patienceMs: number;
  #cancelTimer: CancelTimer;

  constructor(
    request: HttpRequest,
    lease: Lease,
    clock: Clock,
    isUsableAfter: (response: HttpResponse) => boolean,
  ) {
    this.#request = request;
    this.#lease = lease;
    this.#clock = clock;
    this.#isUsableAfter = isUsableAfter;
    this.answer = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.#quietSince = clock.now();
    this.#patienceMs = request.timeoutMs + bodySize(request) / slowestUploadBytesPerMs;
    this.#cancelTimer = clock.schedule(Math.min(parkAfterMs, this.#patienceMs), () =>
      this.#onTimer(),
    );
    this.#stopListening = onAbort(request.signal, (reason) => this.#giveUp(reason));
  }

  /** Sends the request. */
  start(): void {
    if (this.#isOver) return;
    const { method, path, body } = this.#request;
    const headers = headerList(this.#request);
    this.#lease.connection.client.dispatch(
      { method, path, headers, body, headersTimeout: 0, bodyTimeout: 0 },
      this,
    );
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error("the request was given up"));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#status = status;
    for (const name in headers) {
      const value = headers[name];
      if (value !== undefined) this.#headers[name] = typeof value === "string" ? value : value[0]!;
    }
    this.#patienceMs = this.#request.timeoutMs;
    this.#answeredAt = this.#quietSince = this.#clock.now();
  }

  onResponseData(_controller: Dispatcher.DispatchController, part: Buffer): void {
    this.#parts.push(part);
    this.#quietSince = this.#clock.now();
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    const body = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts);
    const downloadMs = this.#clock.now() - this.#answeredAt;
    const response = { status: this.#status, headers: this.#headers, body, downloadMs };
    this.#end(this.#isUsableAfter(response));
    this.#settle.resolve(response);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#isOver) return;
    this.#end(false);
    this.#settle.reject(toConnectionError(error, this.#request, this.#controller !== undefined));
  }

  #onTimer(): void {
    this.#lease.park();
    const leftMs = this.#quietSince + this.#patienceMs - this.#clock.now();
    if (leftMs > 0) {
      this.#cancelTimer = this.#clock.schedule(leftMs, () => this.#onTimer());
      return;
    }
    this.#giveUp(
      new APITimeoutError(
        `Request timed out: ${this.#request.method} ${this.#request.path} got ${
          this.#status === 0 ? "no answer" : "no further part of its answer"
        } for ${Math.round(this.#patienceMs)} ms.`,
        { request: describeRequest(this.#request), wasSent: this.#controller !== undefined },
      ),
    );
  }

  #giveUp(reason: unknown): void {
    if (this.#isOver) return;
    this.#end(false);
    this.#controller?.abort(new Error("the request was given up"));
    this.#settle.reject(reason);
  }

  #end(isConnectionUsable: boolean): void {
    this.#isOver = true;
    this.#cancelTimer();
    this.#stopListening();
    this.#lease.giveBack(isConnectionUsable);
  }
}

function bodySize({ body }: HttpRequest): number {
  return body === null ? 0 : body.length;
}

function toConnectionError(
  error: Error,
  request: HttpRequest,
  wasSent: boolean,
): APIConnectionError {
  const code = "code" in error ? String(error.code) : "";
  const options = { cause: error, request: describeRequest(request), wasSent };
  if (code === "UND_ERR_CONNECT_TIMEOUT") {
    return new APITimeoutError(`Could not connect to ${request.origin} in time.`, options);
  }
  return new APIConnectionError(
    `Connection error: ${request.method} ${request.origin}${request.path}: ${error.message || code}`,
    options,
  );
}
