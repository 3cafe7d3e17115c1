import { readFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { hubDatasetFiles, type HubDatasetOptions } from "../src/index.js";
import { FakeHub } from "./support/fake-hub.js";
import { useTemporaryFolder } from "./support/temporary-folder.js";

const inFolder = useTemporaryFolder();
const id = "tiny-org/talks";
const [commit, otherCommit] = ["a".repeat(40), "b".repeat(40)];
let hub: FakeHub;

beforeEach(async () => {
  hub = await FakeHub.start();
});
afterEach(() => hub.stop());

function serve(names: readonly string[], converted?: readonly string[]): void {
  const files = (list: readonly string[]) =>
    Object.fromEntries(list.map((name) => [name, Buffer.from(`contents of ${name}`)]));
  const branches = converted && {
    "refs/convert/parquet": { commit: otherCommit, files: files(converted) },
  };
  hub.repositories.set(`datasets/${id}`, {
    commit,
    files: files(["README.md", ...names]),
    ...(branches && { branches }),
  });
}

async function contents(options: HubDatasetOptions = {}, name = id): Promise<string[]> {
  const env = { HF_ENDPOINT: hub.endpoint, HF_HOME: inFolder("hf"), ...options.env };
  const retryPolicy = { maxAttempts: 2, firstDelayMs: 1, maxDelayMs: 2 };
  const found: string[] = [];
  for await (const file of hubDatasetFiles(name, { retryPolicy, ...options, env })) {
    found.push((await readFile(file, "utf8")).replace("contents of ", ""));
  }
  return found;
}

it("takes the Parquet files of a split, in order", async () => {
  serve([
    "data/train-00001-of-00002.parquet",
    "data/train-00000-of-00002.parquet",
    "data/test-00000-of-00001.parquet",
    "train.jsonl",
  ]);
  expect(await contents()).toEqual([
    "data/train-00000-of-00002.parquet",
    "data/train-00001-of-00002.parquet",
  ]);
  expect(await contents({ split: "test" })).toEqual(["data/test-00000-of-00001.parquet"]);
});

it("falls back to the hub's converted files, then to the files themselves", async () => {
  serve(["talks.jsonl"], ["default/train/0000.parquet", "default/test/0000.parquet"]);
  expect(await contents()).toEqual(["default/train/0000.parquet"]);
  serve(["train.csv", "test.csv"]);
  expect(await contents()).toEqual(["train.csv"]);
  serve(["talks.jsonl"]);
  expect(await contents()).toEqual(["talks.jsonl"]);
});

it("takes one configuration of several", async () => {
  serve(["easy/train-0.parquet", "hard/train-0.parquet"]);
  expect(await contents({ config: "hard" })).toEqual(["hard/train-0.parquet"]);
});

it("downloads a file on demand, once, and finds it without a network", async () => {
  serve(["train-0.parquet", "train-1.parquet"]);
  const env = { HF_ENDPOINT: hub.endpoint, HF_HOME: inFolder("hf") };
  const files = hubDatasetFiles(id, { env });
  const first = await files.next();
  await files.return(undefined);
  expect(path.relative(inFolder("hf"), first.value as string)).toBe(
    path.join("hub", "datasets--tiny-org--talks", "snapshots", commit, "train-0.parquet"),
  );
  const asked = (name: string) =>
    hub.seen.filter(({ method, path: url }) => method === "GET" && url.endsWith(name)).length;
  expect([asked("train-0.parquet"), asked("train-1.parquet")]).toEqual([1, 0]);
  expect(await contents()).toHaveLength(2);
  expect([asked("train-0.parquet"), asked("train-1.parquet")]).toEqual([1, 1]);
  const before = hub.seen.length;
  expect(await contents({ env: { HF_HUB_OFFLINE: "1" } })).toHaveLength(2);
  expect(hub.seen).toHaveLength(before);
});

it("reports a missing data set, a missing split and an empty cache", async () => {
  await expect(contents()).rejects.toThrow("the data set tiny-org/talks");
  serve(["train.jsonl"]);
  await expect(contents({ split: "dev" })).rejects.toThrow('no files of the split "dev"');
  await expect(
    contents({ env: { HF_HUB_OFFLINE: "1", HF_HOME: inFolder("empty") } }),
  ).rejects.toThrow("is not in the cache");
  await expect(contents({}, "../evil")).rejects.toThrow("../evil");
});
