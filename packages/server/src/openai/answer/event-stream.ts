import type { ApiError } from "../../errors/api-error.js";
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
  readonly tellError: (error: unknown) => ApiError;
  /** Called on a failure after the response has started, to send it as an event. */
  readonly errorEvent: (error: ApiError, send: SendEvent) => void;
  /** The last line of every stream. */
  readonly lastLine: string;
}

const streamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
};

/**
 * Answers with server-sent events while `work` runs.
 *
 * - The response starts with the first event, so that an earlier failure is an ordinary error. A client that waits
 *   longer than a ping gets the headers and comments meanwhile.
 * - Events of one turn of the event loop are sent together.
 * - Nothing is pushed to a client that does not read; its buffer holds no more than its response.
 * - Hanging up stops the work.
 */
export async function eventStream(
  work: (send: SendEvent, signal: AbortSignal) => Promise<void>,
  options: EventStreamOptions,
): Promise<Response> {
  const { clock, pingMs, tellError, errorEvent, lastLine, headers } = options;
  const hangUp = new AbortController();
  const signal = AbortSignal.any([options.signal, hangUp.signal]);
  const encoder = new TextEncoder();
  let pending = "";
  let hasBegun = false;
  let isOver = false;
  let wake: () => void = () => {};
  let begin: () => void = () => {};
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
  const finished = work(send, signal)
    .catch((error: unknown) => {
      if (!hasBegun) throw error;
      if (!signal.aborted) errorEvent(tellError(error), send);
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
