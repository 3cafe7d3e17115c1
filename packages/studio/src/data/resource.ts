import { signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { StudioEvent } from "tinker-ts/wire/studio";
import { ApiFailure } from "./api.js";
import { listen, subscribe } from "./events.js";

/** Data of the server: the last value and the last failure. */
export interface Resource<T> {
  /** The last value; it stays while a newer one is requested, and after a failure. */
  readonly value: ReadonlySignal<T | undefined>;
  /** The failure of the last request. */
  readonly failure: ReadonlySignal<ApiFailure | undefined>;
  /** Requests it again. */
  readonly reload: () => void;
  /** Applies a change before the server confirms it. */
  readonly patch: (change: (value: T) => T) => void;
}

/** How a resource follows events. */
export interface Following<T> {
  /** Topics of the stream that it needs. */
  readonly topics?: readonly string[];
  /** The value after an event; "reload" requests it again, undefined leaves it. */
  readonly on?: (event: StudioEvent, value: T | undefined) => T | "reload" | undefined;
}

// Events of a busy run come several times a second; a list is reloaded at most this often.
const reloadEveryMs = 500;

/**
 * Loads data while a component is mounted, again when `key` changes, on events, and after a
 * reset of the stream. A null key loads nothing.
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
    // Events during a request may not be included in its response.
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
