import type { NumberedEvent, EventHub } from "../recording/event-hub.js";
import type { StudioLane } from "tinker-ts/wire";
import { ApiError, tooMany } from "../errors/api-error.js";

/** Pages that one owner may have open. */
const maxStreams = 64;
const maxTopics = 64;

/** How often queues are read while a page shows them. */
const queueMs = 500;
const pollMs = 1000;

/** How streams are kept. */
export interface EventPageOptions {
  /** A stream with nothing to say says so this often. */
  readonly pingMs: number;
  /** The queues of an owner's models. */
  readonly lanes: (owner: string) => readonly StudioLane[];
  /** Looks for changes of files, while a page is open. */
  readonly poll: () => Promise<void>;
}

/** Streams of events to open pages. */
export class EventPages {
  readonly #hub: EventHub;
  readonly #options: EventPageOptions;
  /** Streams by owner: none takes the places of others. */
  readonly #open = new Map<string, number>();

  constructor(hub: EventHub, options: EventPageOptions) {
    this.#hub = hub;
    this.#options = options;
  }

  /** Answers with a stream that lasts until the page hangs up. */
  open(
    owner: string,
    topics: readonly string[],
    cursor: string | null,
    signal: AbortSignal,
  ): Response {
    if (topics.length === 0 || topics.length > maxTopics) {
      throw new ApiError(400, `topics: name 1 to ${maxTopics}, such as runs,queue,run:ID`);
    }
    const own = this.#open.get(owner) ?? 0;
    if (own >= maxStreams) throw tooMany(`${own} pages are open; close some`, 5000);
    this.#open.set(owner, own + 1);
    const hub = this.#hub;
    const encoder = new TextEncoder();
    let end = (): void => {};
    let wake = (): void => {};
    // A page that does not read is owed the latest event of each key, however many there were.
    const waiting = new Map<string, string>();
    let isOver = false;
    const write = (key: string, text: string): void => {
      waiting.delete(key);
      waiting.set(key, text);
      wake();
    };
    const send = ({ n, key, kind, data }: NumberedEvent): void =>
      write(key, `id: ${hub.cursor(n)}\nevent: ${kind}\ndata: ${data}\n\n`);
    write("open", ": open\n\n");
    const { isReset, stop } = hub.listen({ owner, topics: new Set(topics), send }, cursor);
    const reason = "the server no longer knows what was missed";
    const head = `id: ${hub.cursor()}\n`;
    // A first event even when nothing happens: a page that reconnects has a cursor to resume from.
    if (isReset) write("head", `${head}event: reset\ndata: ${JSON.stringify({ reason })}\n\n`);
    else if (cursor === null) write("head", `${head}event: open\ndata: {}\n\n`);
    const { pingMs, lanes, poll } = this.#options;
    const ping = setInterval(() => write("ping", ": ping\n\n"), pingMs);
    ping.unref();
    let shown = "";
    const sendQueues = (): void => {
      const now = JSON.stringify({ lanes: lanes(owner) });
      // Without an id: where queues stand is no step of the order that a cursor goes on in.
      if (now !== shown) write("queue", `event: queue\ndata: ${now}\n\n`);
      shown = now;
    };
    const queues = topics.includes("queue") ? setInterval(sendQueues, queueMs) : undefined;
    queues?.unref();
    const polling = setInterval(() => void poll(), pollMs);
    polling.unref();
    end = () => {
      if (isOver) return;
      isOver = true;
      const left = this.#open.get(owner)! - 1;
      if (left > 0) this.#open.set(owner, left);
      else this.#open.delete(owner);
      clearInterval(ping);
      clearInterval(queues);
      clearInterval(polling);
      stop();
      signal.removeEventListener("abort", end);
      wake();
    };
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          if (waiting.size === 0 && !isOver) {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
          }
          if (waiting.size > 0 && !isOver) {
            controller.enqueue(encoder.encode([...waiting.values()].join("")));
          }
          waiting.clear();
          if (isOver) controller.close();
        },
        cancel: () => end(),
      },
      { highWaterMark: 0 },
    );
    return new Response(body, {
      headers: { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" },
    });
  }
}
