import { signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { readStudioSeries, type StudioSeries } from "tinker-ts/wire/studio";
import { ApiFailure, callRaw } from "./api.js";
import { listen, subscribe } from "./events.js";

// Every chart loads its own metric. Simultaneous loads over the same runs and range share one request,
// because a browser has six connections and one of them is the stream.

/** The data of a chart. */
export interface SeriesQuery {
  readonly runs: readonly string[];
  /** Names of one metric: the server's and those of loggers. */
  readonly keys: readonly string[];
  /** `step`, `tokens`, `time`, `relative`, `active` or the name of a metric. */
  readonly x: string;
  /** The range of x; null for all of it. */
  readonly range: readonly [number, number] | null;
  readonly buckets: number;
}

/** The series so far. */
export interface SeriesAnswer {
  readonly series: ReadonlySignal<readonly StudioSeries[] | null>;
  readonly failure: ReadonlySignal<ApiFailure | null>;
}

const followEveryMs = 500;
// A long run changes little in half a second, and its curve costs more.
const followLongEveryMs = 2000;
const longPoints = 20_000;
const zoomDelayMs = 80;

/** The points that a chart shows; new ones are added automatically, also in a zoomed range. */
export function useSeries(query: SeriesQuery): SeriesAnswer {
  const series = useMemo(() => signal<readonly StudioSeries[] | null>(null), []);
  const failure = useMemo(() => signal<ApiFailure | null>(null), []);
  const key = JSON.stringify(query);
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let askedAt = 0;
    // One request at a time: of two, the older response could come last.
    let isAsking = false;
    let isStale = false;
    const ask = async (): Promise<void> => {
      timer = undefined;
      askedAt = performance.now();
      isAsking = true;
      isStale = false;
      try {
        const answer = await batched(query, abort.signal);
        if (abort.signal.aborted) return;
        series.value = answer;
        failure.value = null;
      } catch (error) {
        if (abort.signal.aborted) return;
        if (!(error instanceof ApiFailure)) throw error;
        failure.value = error;
      }
      isAsking = false;
      if (isStale) askSoon();
    };
    const askSoon = (): void => {
      if (isAsking) {
        isStale = true;
        return;
      }
      const total = series.peek()?.reduce((sum, one) => sum + one.total, 0) ?? 0;
      const every = total > longPoints ? followLongEveryMs : followEveryMs;
      timer ??= setTimeout(() => void ask(), Math.max(0, every - (performance.now() - askedAt)));
    };
    // A range follows the mouse: the drawn points move at once, the points of the new range are loaded when it rests.
    if (series.peek() && query.range) timer = setTimeout(() => void ask(), zoomDelayMs);
    else void ask();
    const ends = query.runs.map((run) => subscribe(`run:${run}`));
    ends.push(
      listen((event) => {
        const isNew = event.kind === "series" && query.runs.includes(event.run);
        if (event.kind === "reset" || isNew) askSoon();
      }),
    );
    return () => {
      abort.abort();
      clearTimeout(timer);
      for (const end of ends) end();
    };
  }, [key]);
  return { series, failure };
}

interface Waiting {
  readonly keys: readonly string[];
  readonly abort: AbortSignal;
  readonly resolve: (series: readonly StudioSeries[]) => void;
  readonly reject: (error: unknown) => void;
}

const batches = new Map<string, { query: SeriesQuery; waiting: Waiting[] }>();

function batched(query: SeriesQuery, abort: AbortSignal): Promise<readonly StudioSeries[]> {
  const { keys, ...rest } = query;
  const name = JSON.stringify(rest);
  let batch = batches.get(name);
  if (!batch) {
    batch = { query, waiting: [] };
    batches.set(name, batch);
    setTimeout(() => {
      const { waiting } = batches.get(name)!;
      batches.delete(name);
      void fetchAll(query, waiting);
    });
  }
  const { waiting } = batch;
  return new Promise((resolve, reject) => {
    waiting.push({ keys, abort, resolve, reject });
  });
}

async function fetchAll(query: SeriesQuery, asked: readonly Waiting[]): Promise<void> {
  const waiting = asked.filter(({ abort }) => !abort.aborted);
  const keys = [...new Set(waiting.flatMap((one) => one.keys))];
  if (keys.length === 0) return;
  const { runs, x, range, buckets } = query;
  try {
    const response = await callRaw("series", {
      query: {
        runs,
        keys,
        x,
        buckets,
        from: range?.[0],
        to: range?.[1],
      },
    });
    const all = readStudioSeries(await response.arrayBuffer());
    for (const { keys: own, resolve } of waiting)
      resolve(all.filter(({ key }) => own.includes(key)));
  } catch (error) {
    for (const { reject } of waiting) reject(error);
  }
}
