import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { StudioExhibit, StudioExhibitKind, StudioExhibits } from "tinker-ts/wire/studio";
import { ApiFailure, call } from "./api.js";
import { listen } from "./events.js";

/** The current query. */
export interface ExhibitsQuery {
  readonly run: string;
  readonly step: number | null;
  readonly kind: StudioExhibitKind;
  readonly split: string;
  readonly q: string;
}

/** The list so far. */
export interface ExhibitsState {
  readonly exhibits: readonly StudioExhibit[];
  readonly splits: readonly string[];
  readonly seen: number | null;
  readonly failure?: ApiFailure;
}

const pageSize = 500;
// A busy run has events several times a second, and a long list is slow to load.
const reloadMs = 1000;

/** All stored examples of a step, page by page; null before the first response. */
export function useExhibits(query: ExhibitsQuery): ReadonlySignal<ExhibitsState | null> {
  const state = useSignal<ExhibitsState | null>(null);
  const version = useSignal(0);
  const { run, step, kind, split, q } = query;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = listen((event) => {
      const isNew = event.kind === "exhibit" && event.run === run;
      if (event.kind !== "reset" && !isNew) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        version.value++;
      }, reloadMs);
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [run]);
  useEffect(() => {
    const abort = new AbortController();
    void load();
    return () => abort.abort();

    async function load(): Promise<void> {
      if (step === null) {
        state.value = { exhibits: [], splits: [], seen: null };
        return;
      }
      const exhibits: StudioExhibit[] = [];
      let cursor: string | null = null;
      try {
        do {
          const page: StudioExhibits = await call<StudioExhibits>("exhibits", {
            query: { run, step, kind, split, q, cursor, limit: pageSize },
            signal: abort.signal,
          });
          exhibits.push(...page.exhibits);
          cursor = page.cursor;
          const { splits, seen } = page;
          state.value = { exhibits: [...exhibits], splits, seen };
        } while (cursor !== null);
      } catch (error) {
        if (abort.signal.aborted) return;
        if (!(error instanceof ApiFailure)) throw error;
        state.value = { exhibits, splits: [], seen: null, failure: error };
      }
    }
  }, [run, step, kind, split, q, version.value]);
  return state;
}
