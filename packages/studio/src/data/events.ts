import { effect, signal, type ReadonlySignal } from "@preact/signals";
import type { StudioEvent } from "tinker-ts/wire/studio";
import { ApiFailure, callRaw, needsLogin } from "./api.js";
import { greet, hello } from "./login.js";

// One stream for everything that a page shows. Browsers open six connections per server, so there is never a
// second one, and a hidden page closes its own. `fetch` instead of `EventSource`: it can send the
// login. After a break it resumes from the last id; if that is too old the server sends `reset`.

/** The state of the connection. */
export type Connection =
  | { readonly state: "connecting" }
  | { readonly state: "live" }
  | { readonly state: "waiting"; readonly since: number; readonly retryAt: number }
  | { readonly state: "asleep" };

type Listener = (event: StudioEvent) => void;

const hiddenAfterMs = 10_000;
// The server sends a comment every 15 s; two missing ones mean that the line is dead.
const silentAfterMs = 35_000;
const connectionState = signal<Connection>({ state: "connecting" });
const topicCounts = new Map<string, number>();
const topics = signal("runs");
const listeners = new Set<Listener>();
let lastId: string | null = null;
let lostAt: number | null = null;
let attempts = 0;

/** The state of the connection. */
export const connection: ReadonlySignal<Connection> = connectionState;

/** Calls a listener for every event until the returned function is called. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Subscribes to a topic until the returned function is called. */
export function subscribe(topic: string): () => void {
  topicCounts.set(topic, (topicCounts.get(topic) ?? 0) + 1);
  tellTopics();
  return () => {
    const left = (topicCounts.get(topic) ?? 1) - 1;
    if (left > 0) topicCounts.set(topic, left);
    else topicCounts.delete(topic);
    tellTopics();
  };
}

/** Opens the stream and keeps it open. */
export function followEvents(): void {
  const seen = signal(!document.hidden);
  let hiding: ReturnType<typeof setTimeout> | undefined;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(() => (seen.value = false), hiddenAfterMs);
    else seen.value = true;
  });
  effect(() => {
    const wanted = topics.value;
    if (hello.value === null || needsLogin.value) return;
    if (!seen.value) {
      connectionState.value = { state: "asleep" };
      return;
    }
    const abort = new AbortController();
    void run(wanted, abort.signal);
    return () => abort.abort();
  });
}

function tellTopics(): void {
  // In one task: a change of screens reopens the stream only once.
  queueMicrotask(() => (topics.value = ["runs", ...[...topicCounts.keys()].toSorted()].join(",")));
}

async function run(wanted: string, abort: AbortSignal): Promise<void> {
  while (!abort.aborted) {
    try {
      await readStream(wanted, abort);
      throw new ApiFailure("the stream ended", { status: 0, target: "events" });
    } catch (error) {
      if (abort.aborted) return;
      if (error instanceof ApiFailure && error.status === 401) return;
      lostAt ??= Date.now();
      attempts += 1;
      const delay = Math.min(10_000, 500 * 2 ** Math.min(attempts, 5));
      connectionState.value = { state: "waiting", since: lostAt, retryAt: Date.now() + delay };
      await pause(delay, abort);
    }
  }
}

async function readStream(wanted: string, abort: AbortSignal): Promise<void> {
  // Opened before the first request, so that events during requests are not missed.
  lastId ??= hello.value!.cursor!;
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), silentAfterMs);
  try {
    const response = await callRaw("events", {
      query: { topics: wanted },
      headers: { "last-event-id": lastId },
      signal: AbortSignal.any([abort, silence.signal]),
    });
    const wasLost = lostAt !== null;
    lostAt = null;
    attempts = 0;
    connectionState.value = { state: "live" };
    if (wasLost) void greet(); // a restarted server may be of another version
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), silentAfterMs);
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop()!;
      for (const block of blocks) dispatch(block);
    }
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

function dispatch(block: string): void {
  let kind = "";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("id:")) lastId = line.slice(3).trim();
    else if (line.startsWith("event:")) kind = line.slice(6).trim();
    else if (line.startsWith("data:")) data += line.slice(5).trim();
  }
  if (!kind || !data) return;
  const event = { ...(JSON.parse(data) as object), kind } as StudioEvent;
  for (const listener of listeners) listener(event);
}

function pause(ms: number, abort: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      abort.removeEventListener("abort", finish);
      removeEventListener("online", finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    abort.addEventListener("abort", finish);
    addEventListener("online", finish);
  });
}
