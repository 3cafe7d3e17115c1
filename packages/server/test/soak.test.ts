import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ServiceClient } from "tinker-ts";
import { expect, it } from "vitest";
import { startServer } from "../src/index.js";

/*
 * Memory has a plateau: beside training, sampling, streams, logs and an open studio, what is live after a collection
 * does not grow in the last third. TINKER_TS_SOAK_MINUTES makes it shorter.
 */

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
const minutes = Number(process.env["TINKER_TS_SOAK_MINUTES"] ?? 30);
const looks = 30;
const growthLimit = 1.05;
const apiKey = "tml-soak-key";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Resident memory without the garbage of this heap: live values, and what the engine holds in its arenas. */
function liveBytes(): number {
  collect();
  const { rss, heapTotal, heapUsed } = process.memoryUsage();
  return rss - (heapTotal - heapUsed);
}

it.runIf(isFull)(
  `takes no more memory after ${minutes} minutes of mixed work than after ${(minutes * 2) / 3}`,
  async () => {
    const dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-soak-"));
    const limits = {
      maxLogLineBytes: 4 << 20,
      maxExhibitBytes: 16 << 20,
      maxSeriesBytes: 16 << 20,
    };
    const server = await startServer({
      port: 0,
      dataDir,
      logLevel: "error",
      threads: 1,
      limits,
      apiKeys: [{ key: apiKey, owner: "soak" }],
    });
    const service = new ServiceClient({ baseUrl: server.url, apiKey, telemetry: false });
    try {
      const baseModel = "tinker-ts/sprout";
      const training = await service.createLoraTrainingClient({ baseModel, rank: 8 });
      const sampler = await service.createSamplingClient({ baseModel });
      const headers = { "x-api-key": apiKey, authorization: `Bearer ${apiKey}` };
      const over = new AbortController();
      const { signal } = over;
      let count = 0;
      // Few different prompts: what is remembered of them is soon complete.
      const tokens = (length: number) =>
        Array.from({ length }, (_, index) => 5 + ((index * 7 + (count % 8)) % 200));
      const ask = async (page: string, init: RequestInit = {}): Promise<void> => {
        const answer = await fetch(`${server.url}${page}`, { headers, ...init });
        await answer.arrayBuffer();
      };
      const studio = { headers: { ...headers, "x-tinker-studio": "1" } };
      const works: readonly (() => Promise<unknown>)[] = [
        async () => {
          const row = tokens(16 + (count % 64));
          const lossFnInputs = { target_tokens: row, weights: row.map(() => 1) };
          await training.forwardBackward([{ modelInput: row, lossFnInputs }], "cross_entropy");
          await training.optimStep({ learningRate: 1e-4 });
        },
        () =>
          sampler.sample({
            prompt: tokens(8 + (count % 200)),
            samplingParams: { maxTokens: 16 },
            numSamples: 1 + (count % 8),
          }),
        () => {
          const prompt = tokens(8 + (count % 100));
          const body = {
            model: baseModel,
            prompt,
            n: 4,
            max_tokens: 24,
            logprobs: 5,
            stream: true,
          };
          const json = { ...headers, "content-type": "application/json" };
          const init = { method: "POST", body: JSON.stringify(body), headers: json };
          return ask("/v1/completions", init);
        },
        () => {
          const run = `run-${count % 20}`;
          const writer = `w${count}`;
          const step = Math.floor(count / 20);
          const lines = [
            { run, writer, n: 1, kind: "open", name: run },
            { run, writer, n: 2, kind: "metrics", step, metrics: { loss: 1 / count } },
            { run, writer, n: 3, kind: "text", text: "x".repeat(500) },
          ];
          const body = lines.map((line) => JSON.stringify(line)).join("\n");
          return ask("/api/v1/logs", { method: "POST", body });
        },
        () => ask("/studio/api/runs?limit=50&sort=nll", studio),
        () => ask("/studio/api/machine", studio),
        () => ask(`/studio/api/series?runs=${training.modelId}&keys=nll`, studio),
      ];
      const busy = works.map(async (work) => {
        while (!signal.aborted) {
          count++;
          await work();
        }
      });
      const live: number[] = [];
      for (let look = 0; look < looks; look++) {
        await Promise.race([
          new Promise((resolve) => setTimeout(resolve, (minutes * 60_000) / looks)),
          Promise.all(busy),
        ]);
        live.push(liveBytes());
        const { heapUsed, external } = process.memoryUsage();
        const figures = [live.at(-1)!, heapUsed, external].map((size) => (size / 1e6).toFixed(1));
        process.stderr.write(`soak: ${figures.join(", ")} MB, ${count} requests\n`);
      }
      over.abort();
      await Promise.all(busy);
      const last = live.slice(-looks / 3);
      const half = last.length / 2;
      const least = (values: readonly number[]): number => Math.min(...values);
      expect(least(last.slice(half)) / least(last.slice(0, half))).toBeLessThan(growthLimit);
    } finally {
      await service.close();
      await server.close();
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
  (minutes + 5) * 60_000,
);
