import { Store } from "../src/store/store.js";

/** Which runs are made. */
export interface Filling {
  readonly runs: number;
  readonly points: number;
  /** What their names begin with; a number follows. */
  readonly name: string;
}

/** The one point of a lone run that must never be left out of its curve. */
export const peak = 1000;

/**
 * Writes runs with long curves of `nll` straight into a data directory: to log millions of points would take longer
 * than what is measured. Steps begin with 1, so that summaries lie across buckets.
 */
export async function fillPoints(dataDir: string, filling: Filling): Promise<void> {
  const { runs, points, name } = filling;
  const store = new Store(dataDir, { durability: "process" });
  const atATime = 50_000;
  for (let run = 0; run < runs; run++) {
    const logId = `${name}-${run}`;
    await store.write(() => {
      const createdAt = Date.now() - run * 1000;
      store.logs.insert({ logId, owner: "local", source: "log", createdAt });
      store.logs.change(logId, { name: logId, status: "completed" });
    });
    const spike = runs === 1 ? Math.floor(points * 0.617) : -1;
    for (let start = 0; start < points; start += atATime) {
      await store.write(() => {
        const batch = store.series.batch(logId);
        for (let step = start + 1; step <= Math.min(start + atATime, points); step++) {
          const usual = 3 + Math.sin(step / 5000 + run) + ((step * 7919) % 100) / 100;
          const values = { nll: step === spike ? peak : usual };
          batch.add({ attempt: 1, x: step, at: createdAtOf(step), kind: "log", values });
        }
        batch.write();
      });
    }
  }
  await store.close();
}

function createdAtOf(step: number): number {
  return 1_700_000_000_000 + step * 100;
}

const [dataDir, runs, points, name] = process.argv.slice(2);
if (import.meta.filename === process.argv[1] && dataDir !== undefined) {
  await fillPoints(dataDir, { runs: Number(runs), points: Number(points), name: name ?? "run" });
}
