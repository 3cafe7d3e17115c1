import type { ApiError } from "../../errors/api-error.js";
import type { WhenReady } from "../../sampling/sample-requests.js";
import type { Clock } from "../../time/clock.js";

/** Sends one event; the name is left out if the protocol has none. */
export type SendEvent = (data: unknown, name?: string) => void;

/** Options of a stream of events. */
export interface EventStreamOptions {
  readonly signal: AbortSignal;
  /** Called with the work, which may continue after the response has started. */
  readonly streaming: (work: Promise<unknown>) => void;
  readonly clock: Clock;
  /** Interval of pings in an idle stream. */
  readonly pingMs: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Converts a failure to the client's form. */
  readonly renderError: (error: unknown) => ApiError;
  /** Called on a failure after the response has started, to send it as an event. */
  readonly errorEvent: (error: ApiError, send: SendEvent) => void;
  /** The last line of every stream. */
  readonly lastLine: string;
}

/** Sends events until it ends; `whenReady` resolves once the reader has caught up. */
export type EventWork = (
  send: SendEvent,
  signal: AbortSignal,
  whenReady: WhenReady,
) => Promise<void>;

/** Text that waits for the reader before work has to wait for it. */
const maxUnread = 1 << 20;

const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
};

/**
 * Answers with server-sent events while `work` runs.
 *
 * - The answer begins with the first event, so that what fails before is an ordinary error. A client that waits
 *   longer than a ping gets the beginning and comments meanwhile.
 * - What is sent in one turn of the event loop goes out together.
 * - Nothing is pushed to a reader that does not read. Work that waits for `whenReady` now and then keeps little for it.
 * - Hanging up stops the work.
 */
export async function eventStream(work: EventWork, options: EventStreamOptions): Promise<Response> {
  const { clock, pingMs, renderError, errorEvent, lastLine, headers } = options;
  const hangUp = new AbortController();
  const signal = AbortSignal.any([options.signal, hangUp.signal]);
  const encoder = new TextEncoder();
  let pending = "";
  let hasBegun = false;
  let isOver = false;
  let wake: () => void = () => {};
  let begin: () => void = () => {};
  let drained: () => void = () => {};
  signal.addEventListener("abort", () => drained(), { once: true });
  const whenReady: WhenReady = () => {
    if (pending.length <= maxUnread || signal.aborted) return undefined;
    return new Promise<void>((resolve) => {
      drained = resolve;
    });
  };
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const write = (text: string): void => {
    pending += text;
    hasBegun = true;
    begin();
    wake();
  };
  const send: SendEvent = (data, name) => {
    const head = name === undefined ? "" : `event: ${name}\n`;
    write(`${head}data: ${JSON.stringify(data)}\n\n`);
  };
  let cancelPing = (): void => {};
  const schedulePing = (): void => {
    cancelPing = clock.after(pingMs, () => {
      if (pending === "") write(": ping\n\n");
      schedulePing();
    });
  };
  schedulePing();
  const finished = work(send, signal, whenReady)
    .catch((error: unknown) => {
      if (!hasBegun) throw error;
      if (!signal.aborted) errorEvent(renderError(error), send);
    })
    .then(() => {
      isOver = true;
      write(lastLine);
    })
    .finally(() => cancelPing());
  options.streaming(finished);
  await Promise.race([begun, finished]);
  finished.catch(() => {
    // The race has reported it.
  });
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (pending === "" && !isOver) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        if (pending !== "") controller.enqueue(encoder.encode(pending));
        pending = "";
        drained();
        if (isOver) controller.close();
      },
      cancel() {
        hangUp.abort(new DOMException("the client has gone", "AbortError"));
        wake();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { ...streamHeaders, ...headers } });
}
