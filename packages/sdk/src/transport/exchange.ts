import { APIConnectionError, APITimeoutError } from "../errors/api-error.js";
import { listen, stopListening, type AbortListener } from "../runtime/cancellation.js";
import type { CancelTimer, Clock } from "../runtime/clock.js";
import { silenceError, slowestAnswerBytesPerMs, tooLargeError } from "./answer-bounds.js";
import type { Lease } from "./socket-transport.js";
import {
  describeRequest,
  isEmptyBadRequest,
  isSuccess,
  type Headers,
  type HttpRequest,
  type HttpResponse,
  type UploadParts,
} from "./message.js";
import { PartQueue } from "./part-queue.js";
import type { Dispatcher } from "undici";

/** A request that got no answer for this long is parked. */
const parkAfterMs = 100;

/** Uploads may be this slow before the wait for the answer counts as silence. */
const slowestUploadBytesPerMs = 64;

const nothing = new Uint8Array();

/**
 * One request on a leased connection. Implements undici's handler directly: building a stream and an
 * abort signal per answer, as `request` and `fetch` do, costs more than the exchange itself.
 *
 * One timer serves two purposes in turn: first it parks the request, then it watches for silence.
 * Activity only notes the time; the timer looks at the note when it fires and sleeps on.
 *
 * An answer is collected, within its bounds, or delivered part by part where the request asks for it.
 */
export class Exchange implements Dispatcher.DispatchHandler, AbortListener {
  readonly #answer: Promise<HttpResponse>;
  readonly #request: HttpRequest;
  readonly #lease: Lease;
  readonly #clock: Clock;
  #firstPart: Uint8Array | undefined;
  #furtherParts: Uint8Array[] | undefined;
  #queue: PartQueue | undefined;
  #receivedBytes = 0;
  #resolve!: (response: HttpResponse) => void;
  #reject!: (error: unknown) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: Record<string, string> = {};
  #answeredAt = 0;
  #isOver = false;
  #quietSince: number;
  #patienceMs: number;
  #cancelTimer: CancelTimer;

  constructor(request: HttpRequest, lease: Lease, clock: Clock) {
    this.#request = request;
    this.#lease = lease;
    this.#clock = clock;
    this.#answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#quietSince = clock.now();
    this.#patienceMs = request.timeoutMs + bodySize(request) / slowestUploadBytesPerMs;
    this.#cancelTimer = clock.schedule(Math.min(parkAfterMs, this.#patienceMs), () =>
      this.#onTimer(),
    );
    listen(request.signal, this);
  }

  /** Sends the request and waits for the answer. */
  start(): Promise<HttpResponse> {
    if (this.#isOver) return this.#answer;
    const { method, path, body: given } = this.#request;
    const headers = headerList(this.#request);
    const body = typeof given === "function" ? this.#watched(given) : given;
    this.#lease.connection.client.dispatch(
      { method, path, headers, body, headersTimeout: 0, bodyTimeout: 0 } as DispatchOptions,
      this,
    );
    return this.#answer;
  }

  onAbort(reason: unknown): void {
    this.#giveUp(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error("the request was aborted"));
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
    if (this.#request.streams && isSuccess({ status })) this.#openQueue();
    else if (Number(this.#headers["content-length"]) > this.#request.maxAnswerBytes) {
      this.#giveUp(tooLargeError(this.#request, status));
    }
  }

  onResponseData(_controller: Dispatcher.DispatchController, part: Buffer): void {
    if (this.#isOver) return;
    this.#quietSince = this.#clock.now();
    if (this.#queue) return this.#queue.push(part);
    this.#receivedBytes += part.byteLength;
    if (this.#receivedBytes > this.#request.maxAnswerBytes) {
      return this.#giveUp(tooLargeError(this.#request, this.#status));
    }
    if (!this.#firstPart) this.#firstPart = part;
    else (this.#furtherParts ??= []).push(part);
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    if (this.#queue) {
      this.#end(true);
      return this.#queue.end();
    }
    const first = this.#firstPart ?? nothing;
    const body = this.#furtherParts ? Buffer.concat([first, ...this.#furtherParts]) : first;
    const downloadMs = this.#clock.now() - this.#answeredAt;
    const response = { status: this.#status, headers: this.#headers, body, downloadMs };
    // A proxy that answers 400 without a body rejects the connection, not the request.
    this.#end(!isEmptyBadRequest(response));
    this.#resolve(response);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#isOver) return;
    this.#end(false);
    this.#fail(toConnectionError(error, this.#request, this.#controller !== undefined));
  }

  #onTimer(): void {
    this.#lease.park();
    const now = this.#clock.now();
    if (this.#queue?.isPaused) this.#quietSince = now;
    const leftMs = Math.min(this.#quietSince + this.#patienceMs, this.#answerDueAt()) - now;
    if (leftMs > 0) {
      this.#cancelTimer = this.#clock.schedule(leftMs, () => this.#onTimer());
      return;
    }
    const wasSent = this.#controller !== undefined;
    const isSilent = now - this.#quietSince >= this.#patienceMs;
    const what = this.#status === 0 ? "no answer" : "no further part of its answer";
    this.#giveUp(
      isSilent
        ? silenceError(this.#request, what, this.#patienceMs, wasSent)
        : silenceError(this.#request, "too little of its answer", now - this.#answeredAt, wasSent),
    );
  }

  /** When an answer that is read as a whole must be complete, at the pace it has had so far. */
  #answerDueAt(): number {
    if (this.#status === 0 || this.#queue) return Number.POSITIVE_INFINITY;
    const graceMs = this.#receivedBytes / slowestAnswerBytesPerMs;
    return this.#answeredAt + this.#request.timeoutMs + graceMs;
  }

  #openQueue(): void {
    const queue = new PartQueue({
      pause: () => this.#controller?.pause(),
      resume: () => this.#controller?.resume(),
      cancel: () => this.#giveUp(undefined),
    });
    this.#queue = queue;
    this.#lease.park();
    this.#resolve({
      status: this.#status,
      headers: this.#headers,
      body: new Uint8Array(),
      downloadMs: 0,
      parts: queue,
    });
  }

  /** What is being uploaded is no silence. */
  async *#watched(parts: UploadParts): AsyncGenerator<Uint8Array> {
    for await (const part of parts()) {
      this.#quietSince = this.#clock.now();
      yield part;
    }
  }

  #fail(error: unknown): void {
    if (this.#queue) this.#queue.fail(error);
    else this.#reject(error);
  }

  #giveUp(reason: unknown): void {
    if (this.#isOver) return;
    this.#end(false);
    this.#controller?.abort(new Error("the request was aborted"));
    if (this.#queue) this.#queue.abort(reason);
    else this.#reject(reason);
  }

  #end(isConnectionUsable: boolean): void {
    this.#isOver = true;
    this.#cancelTimer();
    stopListening(this.#request.signal, this);
    this.#lease.giveBack(isConnectionUsable);
  }
}

/** undici's types know Node's streams only; any async iterable does. */
type DispatchOptions = Dispatcher.DispatchOptions;

function bodySize({ body }: HttpRequest): number {
  return body === null || typeof body === "function" ? 0 : body.length;
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

interface KnownList {
  readonly common: readonly string[];
  /** Where the value of a name stands. */
  readonly positions: ReadonlyMap<string, number>;
  /** Filled in anew for every request. */
  readonly list: string[];
}

const knownLists = new WeakMap<Headers, KnownList>();

/**
 * All headers of a request as the flat list of names and values that undici takes. Requests come by the thousand,
 * so that all of an endpoint share one list: it is good until the next one asks, and undici reads it at once.
 */
export function headerList(request: HttpRequest): readonly string[] {
  const { commonHeaders, headers, retryCount, idempotencyKey } = request;
  const { common, positions, list } = knownListOf(commonHeaders);
  list.length = common.length;
  for (let index = 1; index < common.length; index += 2) list[index] = common[index]!;
  const put = (name: string, value: string): void => {
    const position = positions.get(name);
    if (position === undefined) list.push(name, value);
    else list[position] = value;
  };
  put("x-stainless-retry-count", String(retryCount));
  if (idempotencyKey !== null) put("x-idempotency-key", idempotencyKey);
  for (const name in headers) put(name, headers[name]!);
  return list;
}

/** Put in order once per endpoint. */
function knownListOf(headers: Headers): KnownList {
  let known = knownLists.get(headers);
  if (!known) {
    const common = Object.entries(headers).flat();
    const positions = Object.keys(headers).map((name, index): [string, number] => [
      name,
      2 * index + 1,
    ]);
    known = { common, positions: new Map(positions), list: common.slice() };
    knownLists.set(headers, known);
  }
  return known;
}
