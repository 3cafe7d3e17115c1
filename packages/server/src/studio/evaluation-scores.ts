import { extendSummary } from "../recording/fold-points.js";
import { toNumber } from "../recording/numbers.js";
import type { RunFiles } from "./folder-files.js";
import { blockOf, startsOf, type AttemptSeries, type RunSeries } from "./run-series.js";

/** What each benchmark of an evaluation came to: `BENCHMARK/score`, `BENCHMARK/num_correct` and the rest of `result.json`. */
export class EvaluationScores {
  readonly attempts = 1;
  readonly brokenLines = 0;
  /** Grows with every change. */
  version = 0;
  readonly #files: RunFiles;
  readonly #series = new Map<string, AttemptSeries[]>();
  #stamp = "";

  constructor(files: RunFiles) {
    this.#files = files;
  }

  /** Reads results that are new. */
  async update(): Promise<void> {
    const found: [string, string][] = [];
    for (const name of await this.#files.names()) {
      const file = await this.#files.find(`${name}/result.json`).catch(() => undefined);
      if (file) found.push([name, file.stamp]);
    }
    const stamp = JSON.stringify(found);
    if (stamp === this.#stamp) return;
    this.#stamp = stamp;
    this.#series.clear();
    for (const [name] of found) {
      const result = (await this.#files.json(`${name}/result.json`)) ?? {};
      this.#add(name, result);
      this.#add(name, (result["metrics"] ?? {}) as Readonly<Record<string, unknown>>);
    }
    this.version++;
  }

  series(): RunSeries {
    return {
      keys: [...this.#series.keys()].toSorted(),
      attempts: (key) => this.#series.get(key) ?? [],
      starts: startsOf(this.#series),
    };
  }

  #add(benchmark: string, values: Readonly<Record<string, unknown>>): void {
    for (const [key, given] of Object.entries(values)) {
      const value = toNumber(given);
      if (value === undefined) continue;
      const points = { x: [0], value: [value], at: [Number.NaN] };
      const summary = extendSummary(undefined, points.x, points.value);
      const series = { attempt: 1, count: 1, firstX: 0, lastX: 0, summary };
      this.#series.set(`${benchmark}/${key}`, [{ ...series, blocks: () => [blockOf(points)] }]);
    }
  }
}
