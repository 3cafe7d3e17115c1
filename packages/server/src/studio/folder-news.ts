import type { StudioMark, StudioNumber } from "tinker-ts/wire";
import type { EventHub } from "../recording/event-hub.js";
import type { LogRecord } from "../store/logs-table.js";
import type { LogFolders } from "./log-folders.js";
import type { RunRows } from "./run-rows.js";

/** What the pages of an owner know of a folder. */
interface Told {
  readonly state: string;
  readonly marks: number;
  readonly steps: Readonly<Record<"rollout" | "sample", readonly number[]>> | null;
}

/** Tells open pages what is new in folders. Files say nothing by themselves: they are looked at while somebody looks. */
export class FolderNews {
  readonly #folders: LogFolders;
  readonly #rows: RunRows;
  readonly #hub: EventHub;
  readonly #told = new Map<string, Map<string, Told>>();

  constructor(folders: LogFolders, rows: RunRows, hub: EventHub) {
    this.#folders = folders;
    this.#rows = rows;
    this.#hub = hub;
  }

  /** Looks, and tells an owner's pages what has changed since the last time. */
  async tell(owner: string): Promise<void> {
    await this.#folders.look();
    const known = this.#told.get(owner);
    const told = known ?? new Map<string, Told>();
    this.#told.set(owner, told);
    for (const log of this.#folders.records(owner)) {
      const { logId } = log;
      const before = told.get(logId);
      const state = `${this.#folders.version(logId)} ${log.updatedAt} ${log.status}`;
      const isOpen = this.#hub.hasListener(owner, `run:${logId}`);
      if (before?.state === state && (!isOpen || before.steps !== null)) continue;
      const steps = isOpen ? await this.#steps(logId) : null;
      told.set(logId, { state, marks: this.#folders.marks(logId).length, steps });
      // What a page saw before its stream began may be older than this, but only of runs that go on.
      if (before?.state === state || (!known && log.status !== "running")) continue;
      this.#hub.publish(owner, "runs", { kind: "run", run: this.#rows.row(log) });
      if (isOpen) this.#tellOpen(owner, log, before, steps);
    }
  }

  #tellOpen(
    owner: string,
    { logId: run, updatedAt: at }: LogRecord,
    before: Told | undefined,
    steps: Told["steps"],
  ): void {
    const topic = `run:${run}`;
    const series = this.#folders.series(run);
    const points = new Map<string, Record<string, StudioNumber>>();
    for (const key of series.keys) {
      const { attempt, lastX, summary } = series.attempts(key).at(-1)!;
      const place = `${attempt} ${lastX}`;
      points.set(place, { ...points.get(place), [key]: summary.last });
    }
    const told = [...points].map(([place, values]) => {
      const [attempt = 1, x = 0] = place.split(" ").map(Number);
      return { x, at, attempt, values };
    });
    this.#hub.publish(owner, topic, { kind: "series", run, points: told });
    this.#hub.publish(owner, topic, { kind: "log", run, lines: [] });
    for (const mark of this.#folders.marks(run).slice(before?.marks ?? 0)) {
      const shown = { ...mark, kind: mark.kind as StudioMark["kind"] };
      this.#hub.publish(owner, topic, { kind: "mark", run, mark: shown });
    }
    for (const kind of ["rollout", "sample"] as const) {
      const old = new Set(before?.steps?.[kind]);
      for (const step of steps?.[kind] ?? []) {
        if (!old.has(step))
          this.#hub.publish(owner, topic, { kind: "exhibit", run, step, exhibit: kind, count: 1 });
      }
    }
  }

  async #steps(id: string): Promise<NonNullable<Told["steps"]>> {
    const [rollout, sample] = await Promise.all([
      this.#folders.steps(id, "rollout"),
      this.#folders.steps(id, "sample"),
    ]);
    return { rollout, sample };
  }
}
