import { signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { StudioEvent } from "tinker-ts/wire/studio";
import { ApiFailure } from "./api.js";
import { listen, subscribe } from "./events.js";

/** Something of the server: what is known of it, and what went wrong last. */
export interface Resource<T> {
  /** The last answer; it stays while a newer one is asked for or refused. */
  readonly value: ReadonlySignal<T | undefined>;
  /** Why the last question was refused. */
  readonly failure: ReadonlySignal<ApiFailure | undefined>;
  /** Asks again. */
  readonly reload: () => void;
  /** Puts a change in place before the server tells of it. */
  readonly patch: (change: (value: T) => T) => void;
}

/** How a resource follows what happens. */
export interface Following<T> {
  /** Topics of the stream that it needs. */
  readonly topics?: readonly string[];
  /** What an event makes of the value; "reload" asks again, undefined leaves it. */
  readonly on?: (event: StudioEvent, value: T | undefined) => T | "reload" | undefined;
}

// Events of a busy run come several times a second; a list is asked for again at most this often.
const reloadEveryMs = 500;

/**
 * Asks for something as long as a component is there, again when `key` changes, when an event says so, and after a
 * reset of the stream. A null key asks for nothing.
 */
export function useResource<T>(
  key: string | null,
  ask: (abort: AbortSignal) => Promise<T>,
  following: Following<T> = {},
): Resource<T> {
  const store = useMemo(() => makeStore<T>(), []);
  useEffect(() => {
    if (key === null) return;
    store.begin(ask, following.on);
    const ends = (following.topics ?? []).map((topic) => subscribe(topic));
    ends.push(listen((event) => store.receive(event)));
    return () => {
      for (const end of ends) end();
      store.end();
    };
  }, [key]);
  return store;
}

function makeStore<T>() {
  const value = signal<T | undefined>(undefined);
  const failure = signal<ApiFailure | undefined>(undefined);
  let ask: ((abort: AbortSignal) => Promise<T>) | null = null;
  let on: Following<T>["on"];
  let abort = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let askedAt = 0;
  let isAsking = false;
  let isStale = false;

  const fetchNow = async (): Promise<void> => {
    if (!ask) return;
    isAsking = true;
    isStale = false;
    askedAt = performance.now();
    const { signal: own } = abort;
    try {
      const answer = await ask(own);
      if (own.aborted) return;
      value.value = answer;
      failure.value = undefined;
    } catch (error) {
      if (own.aborted) return;
      if (!(error instanceof ApiFailure)) throw error;
      failure.value = error;
    }
    isAsking = false;
    if (isStale) schedule();
  };

  const schedule = (): void => {
    // What happens while an answer is on its way may not be in it.
    if (isAsking) {
      isStale = true;
      return;
    }
    if (timer !== undefined) return;
    const delay = Math.max(0, reloadEveryMs - (performance.now() - askedAt));
    timer = setTimeout(() => {
      timer = undefined;
      void fetchNow();
    }, delay);
  };

  const end = (): void => {
    abort.abort();
    clearTimeout(timer);
    timer = undefined;
    isAsking = false;
    ask = null;
  };

  return {
    value,
    failure,
    begin(next: (abort: AbortSignal) => Promise<T>, follow: Following<T>["on"]): void {
      end();
      abort = new AbortController();
      ask = next;
      on = follow;
      void fetchNow();
    },
    end,
    reload: schedule,
    receive(event: StudioEvent): void {
      const next = event.kind === "reset" ? "reload" : on?.(event, value.peek());
      if (next === "reload") schedule();
      else if (next !== undefined) value.value = next;
    },
    patch: (change: (old: T) => T): void => {
      if (value.value !== undefined) value.value = change(value.value);
    },
  };
}
