import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ManualClock } from "../../test/support/manual-clock.js";
import { createLogger } from "../log/logger.js";
import { Metrics } from "../metrics/metrics.js";
import { SqlDatabase } from "../store/sql.js";
import { Store } from "../store/store.js";
import { identityOf } from "../store/content.js";
import { Journal, type NewRequest } from "./journal.js";

let folder: string;
let store: Store;
let clock: ManualClock;
let journal: Journal;
let metrics: Metrics;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-journal-"));
  store = new Store(folder, { durability: "process" });
  clock = new ManualClock();
  metrics = new Metrics();
  journal = new Journal(store, clock, createLogger("silent"), metrics);
});
afterEach(async () => {
  metrics.close();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const request = (payload: Uint8Array): NewRequest => ({
  requestId: "r",
  owner: "me",
  sessionId: null,
  modelId: null,
  samplerId: null,
  seq: null,
  kind: "sample",
  identity: identityOf("sample", payload),
  payload,
});
const facts = { startedAt: null, finishedAt: 0, applied: null, tokens: 0 };
const done = (bytes: Uint8Array) =>
  ({ state: "done", resultType: "SampleResponse", bytes }) as const;

it.each([
  ["small", 10],
  ["large", 100_000],
])("gives a %s payload and result back", async (_, size) => {
  const payload = Buffer.alloc(size, 1);
  const row = (await journal.accept(request(payload), () => {}))!;
  // What waits does not take the memory of what it asks for.
  expect(row).not.toHaveProperty("payload");
  expect(Buffer.from(await journal.payload("r")).equals(payload)).toBe(true);
  await journal.finish(row, done(Buffer.alloc(size, 2)), facts);
  expect(await journal.outcome("r")).toMatchObject({ state: "done", resultType: "SampleResponse" });
  await expect(journal.payload("r")).rejects.toThrow("is missing");
});

it("leaves no file behind for a request that is refused or known", async () => {
  const payload = Buffer.alloc(100_000, 1);
  const refuse = () => {
    throw new Error("no");
  };
  await expect(journal.accept(request(payload), refuse)).rejects.toThrow("no");
  expect(store.retention.blobs().size).toBe(0);
  expect(await store.blobs.findUnknown(new Set())).toEqual([]);
  await Promise.all([
    journal.accept(request(payload), () => {}),
    journal.accept(request(payload), () => {}),
  ]);
  expect(await store.blobs.findUnknown(store.retention.blobs())).toEqual([]);
});

it.each([
  ["keeps the payload of a request that is in the journal", 7],
  ["leaves no file of a payload that is not needed any more", null],
])("%s", async (_, applied) => {
  const payload = Buffer.alloc(100_000, 1);
  const row = (await journal.accept(request(payload), () => {}))!;
  await journal.finish(row, done(Buffer.from([2])), { ...facts, applied, tokens: 5 });
  expect(store.requests.get("r")).toMatchObject({ state: "done", applied, finishedAt: 0 });
  if (applied === null) await expect(journal.payload("r")).rejects.toThrow("is missing");
  else expect(Buffer.from(await journal.payload("r")).equals(payload)).toBe(true);
  expect(await store.blobs.findUnknown(store.retention.blobs())).toEqual([]);
});

it("leaves a request pending when its outcome cannot be written", async () => {
  const row = (await journal.accept(request(Buffer.from([1])), () => {}))!;
  const finished = journal.finish(row, done(Buffer.from([2])), facts, () => {
    throw new Error("not this");
  });
  await expect(finished).rejects.toThrow("not this");
  expect(store.requests.pending()).toHaveLength(1);
  await journal.finish(row, { state: "failed", error: "no", category: "server" }, facts);
  expect(await journal.outcome("r")).toMatchObject({ state: "failed" });
});

it("keeps an outcome until the disk takes it", async () => {
  const row = (await journal.accept(request(Buffer.from([1])), () => {}))!;
  // Somebody else writes to the database and does not come to an end.
  const other = new SqlDatabase(path.join(folder, "server.db"));
  other.exec("BEGIN IMMEDIATE");
  let isDone = false;
  const waiting = journal
    .wait("r", 60_000, new AbortController().signal)
    .finally(() => (isDone = true));
  const finished = journal.finish(row, done(Buffer.from([2])), facts);
  await clock.advance(2500);
  expect(isDone).toBe(false);
  other.exec("ROLLBACK");
  other.close();
  await clock.advance(1000);
  await finished;
  expect(await waiting).toMatchObject({ state: "done" });
});

it("records nothing after it was sealed, so that the request runs again at the next start", async () => {
  const row = (await journal.accept(request(Buffer.from([1])), () => {}))!;
  journal.seal();
  await journal.finish(row, done(Buffer.from([2])), facts);
  expect(store.requests.pending()).toHaveLength(1);
});
