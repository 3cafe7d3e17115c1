import { signal, type ReadonlySignal } from "@preact/signals";
import type { StudioLabel, StudioRun, StudioRuns } from "tinker-ts/wire/studio";
import { ApiFailure, call } from "./api.js";
import { listen } from "./events.js";

// The list as the server filters and sorts it. Rows of runs that have changed are fetched and change in place, so
// nothing jumps under the reader; a run that is new fetches the list again.

/** The current query. */
export interface RunsQuery {
  readonly q: string;
  readonly sort: string;
  readonly archived: boolean;
}

/** The list so far. */
export interface RunsState {
  readonly runs: readonly StudioRun[];
  /** False while further pages are loading. */
  readonly isWhole: boolean;
  readonly failure?: ApiFailure;
}

const pageSize = 500;
// As many as fit into an address.
const maxIds = 50;
const state = signal<RunsState | null>(null);
let query: RunsQuery | null = null;
let abort = new AbortController();
let timer: ReturnType<typeof setTimeout> | undefined;
/** Runs that have changed since their rows were fetched. */
const changed = new Set<string>();
let changedTimer: ReturnType<typeof setTimeout> | undefined;
let isLoading = false;

/** The list so far; null before the first response. */
export const runList: ReadonlySignal<RunsState | null> = state;

/** Shows another selection of runs. */
export function askForRuns(next: RunsQuery): void {
  if (query && query.q === next.q && query.sort === next.sort && query.archived === next.archived)
    return;
  query = next;
  void load();
}

/** Reloads the list. */
export function reloadRuns(): void {
  timer ??= setTimeout(() => {
    timer = undefined;
    void load();
  }, 250);
}

/** Changes the editable fields of a run. */
export async function label(id: string, change: StudioLabel): Promise<StudioRun> {
  const run = await call<StudioRun>("label", { params: { id }, body: change });
  put(run);
  return run;
}

/** Keeps the list up to date. */
export function followRuns(): void {
  listen((event) => {
    if (event.kind === "reset") reloadRuns();
    if (event.kind !== "run") return;
    changed.add(event.run);
    changedTimer ??= setTimeout(() => void loadChanged(), 250);
  });
}

/** Fetches the rows of runs that have changed; after any pending list, which may be older. */
async function loadChanged(): Promise<void> {
  if (isLoading || changed.size === 0) {
    changedTimer = undefined;
    return;
  }
  const ids = [...changed].slice(0, maxIds);
  for (const id of ids) changed.delete(id);
  const { signal: own } = abort;
  try {
    const rows = await call<StudioRuns>("runs", {
      query: { ids, q: query?.q, archived: 1, limit: maxIds },
      signal: own,
    });
    for (const run of rows.runs) put(run);
  } catch (error) {
    if (!own.aborted && !(error instanceof ApiFailure)) throw error;
    // The list is fetched again when the stream is back.
  }
  changedTimer = changed.size > 0 ? setTimeout(() => void loadChanged(), 250) : undefined;
}

function put(run: StudioRun): void {
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
  isLoading = true;
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
  } catch (error) {
    if (own.aborted) return;
    if (!(error instanceof ApiFailure)) throw error;
    state.value = { runs: state.value?.runs ?? [], isWhole: true, failure: error };
  }
  if (own.aborted) return;
  isLoading = false;
  void loadChanged();
}
