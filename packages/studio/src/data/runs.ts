import { signal, type ReadonlySignal } from "@preact/signals";
import type { StudioLabel, StudioRun, StudioRuns } from "tinker-ts/wire/studio";
import { ApiFailure, call } from "./api.js";
import { listen } from "./events.js";

// The list as the server filters and sorts it. Rows change in place when the stream tells of them, so nothing jumps
// while somebody reads; a run that is new asks for the list again.

/** What is asked for. */
export interface RunsQuery {
  readonly q: string;
  readonly sort: string;
  readonly archived: boolean;
}

/** The list so far. */
export interface RunsState {
  readonly runs: readonly StudioRun[];
  /** False while further pages are on their way. */
  readonly isWhole: boolean;
  readonly failure?: ApiFailure;
}

const pageSize = 500;
const state = signal<RunsState | null>(null);
let query: RunsQuery | null = null;
let abort = new AbortController();
let timer: ReturnType<typeof setTimeout> | undefined;
/** Rows that were told while the list was on its way, and may be newer than those in it. */
let meanwhile: StudioRun[] | null = null;

/** The list as far as it is known; null before the first answer. */
export const runList: ReadonlySignal<RunsState | null> = state;

/** Shows another selection of runs. */
export function askForRuns(next: RunsQuery): void {
  if (query && query.q === next.q && query.sort === next.sort && query.archived === next.archived)
    return;
  query = next;
  void load();
}

/** Asks again. */
export function reloadRuns(): void {
  timer ??= setTimeout(() => {
    timer = undefined;
    void load();
  }, 250);
}

/** Changes what a person may change of a run. */
export async function label(id: string, change: StudioLabel): Promise<StudioRun> {
  const run = await call<StudioRun>("label", { params: { id }, body: change });
  put(run);
  return run;
}

/** Keeps the list true. */
export function followRuns(): void {
  listen((event) => {
    if (event.kind === "run") put(event.run);
    else if (event.kind === "removed") {
      if (state.value)
        state.value = {
          ...state.value,
          runs: state.value.runs.filter(({ id }) => id !== event.run),
        };
    } else if (event.kind === "reset") reloadRuns();
  });
}

function put(run: StudioRun): void {
  meanwhile?.push(run);
  const old = state.value;
  if (!old) return;
  const place = old.runs.findIndex(({ id }) => id === run.id);
  if (place < 0) {
    if (run.archivedAt === null || query?.archived) reloadRuns();
    return;
  }
  if (old.runs[place]!.isPinned !== run.isPinned) reloadRuns();
  const isGone = run.archivedAt !== null && !query?.archived;
  state.value = { ...old, runs: isGone ? old.runs.toSpliced(place, 1) : old.runs.with(place, run) };
}

async function load(): Promise<void> {
  if (!query) return;
  abort.abort();
  abort = new AbortController();
  const { signal: own } = abort;
  const { q, sort, archived } = query;
  const runs: StudioRun[] = [];
  const told: StudioRun[] = (meanwhile = []);
  let cursor: string | null = null;
  try {
    do {
      const page: StudioRuns = await call<StudioRuns>("runs", {
        query: { q, sort, cursor, limit: pageSize, archived: archived ? 1 : null },
        signal: own,
      });
      runs.push(...page.runs);
      cursor = page.cursor;
      // A reload keeps the old rows until it has as many: the list must not shrink under the reader.
      const isLonger = runs.length >= (state.value?.runs.length ?? 0);
      if (cursor === null || isLonger) state.value = { runs: [...runs], isWhole: cursor === null };
    } while (cursor !== null);
    meanwhile = null;
    for (const run of told) put(run);
  } catch (error) {
    if (own.aborted) return;
    if (!(error instanceof ApiFailure)) throw error;
    meanwhile = null;
    state.value = { runs: state.value?.runs ?? [], isWhole: true, failure: error };
  }
}
