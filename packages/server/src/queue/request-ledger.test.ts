import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ManualClock } from "../../test/support/manual-clock.js";
import { createLogger } from "../log/logger.js";
import { Metrics } from "../metrics/metrics.js";
import type { RequestHead } from "../store/requests-table.js";
import { SqlDatabase } from "../store/sql.js";
import { Store } from "../store/store.js";
import { identityOf } from "./canonical-payload.js";
import { RequestLedger, type RequestDraft } from "./request-ledger.js";

let folder: string;
let store: Store;
let clock: ManualClock;
let ledger: RequestLedger;
let metrics: Metrics;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-ledger-"));
  store = new Store(folder, { durability: "process" });
  clock = new ManualClock();
  metrics = new Metrics();
  ledger = new RequestLedger(store, clock, createLogger("silent"), metrics);
});
afterEach(async () => {
  metrics.close();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const draft = (payload: Uint8Array): RequestDraft => ({
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
  const head = (await ledger.accept(draft(payload), () => {}))!;
  // What waits does not take the memory of what it asks for.
  expect(head).not.toHaveProperty("payload");
  expect(Buffer.from(await ledger.payload("r")).equals(payload)).toBe(true);
  await ledger.finish(head, done(Buffer.alloc(size, 2)), facts);
  expect(await ledger.outcome("r")).toMatchObject({ state: "done", resultType: "SampleResponse" });
  await expect(ledger.payload("r")).rejects.toThrow("is missing");
});

it("leaves no file behind for a request that is refused or known", async () => {
  const payload = Buffer.alloc(100_000, 1);
  const refuse = () => {
    throw new Error("no");
  };
  await expect(ledger.accept(draft(payload), refuse)).rejects.toThrow("no");
  expect(store.retention.blobs().size).toBe(0);
  expect(await store.blobs.findUnknown(new Set())).toEqual([]);
  await Promise.all([
    ledger.accept(draft(payload), () => {}),
    ledger.accept(draft(payload), () => {}),
  ]);
  expect(await store.blobs.findUnknown(store.retention.blobs())).toEqual([]);
});

describe("a request whose sender waits for its outcome", () => {
  const accept = (holdMs: number, begin: (head: RequestHead) => boolean) =>
    ledger.accept(draft(Buffer.from([1])), () => {}, begin, holdMs);

  it("is committed together with the outcome, of which the sender then learns", async () => {
    const reader = new SqlDatabase(path.join(folder, "server.db"));
    const states = (): unknown[] =>
      reader
        .sql("SELECT state FROM requests")
        .all()
        .map((row) => row["state"]);
    let begun: RequestHead | undefined;
    const accepting = accept(1000, (head) => {
      begun = head;
      return true;
    });
    // Behind the timer of a commit that has a millisecond, and behind that commit.
    await new Promise((next) => setTimeout(next, 2));
    await new Promise((next) => setImmediate(next));
    let statesBefore: unknown[] | undefined;
    const finished = ledger.finish(begun!, done(Buffer.from([2])), facts, () => {
      statesBefore = states();
    });
    const told = accepting.then(async () => {
      // A handler has some turns of promises to go before it waits.
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
      return ledger.waiters.wait("r", 60_000, new AbortController().signal);
    });
    expect(await told).toMatchObject({ state: "done" });
    expect(statesBefore).toEqual([]);
    expect(states()).toEqual(["done"]);
    await finished;
    reader.close();
  });

  it.each([
    ["keeps a payload of the journal", 7],
    ["leaves no file of a payload that is not needed any more", null],
  ])("%s when both are one commit", async (_, applied) => {
    const payload = Buffer.alloc(100_000, 1);
    let finished: Promise<void> | undefined;
    const begin = (head: RequestHead): boolean => {
      finished = ledger.finish(head, done(Buffer.from([2])), { ...facts, applied, tokens: 5 });
      return true;
    };
    await ledger.accept(draft(payload), () => {}, begin, 1000);
    await finished;
    const timeline = store.requests.head("r");
    expect(timeline).toMatchObject({ state: "done", applied, finishedAt: 0 });
    expect(timeline?.payloadBytes).toBe(applied === null ? 0 : payload.length);
    if (applied === null) await expect(ledger.payload("r")).rejects.toThrow("is missing");
    else expect(Buffer.from(await ledger.payload("r")).equals(payload)).toBe(true);
    expect(await store.blobs.findUnknown(store.retention.blobs())).toEqual([]);
    expect(await ledger.outcome("r")).toMatchObject({ state: "done", bytes: Buffer.from([2]) });
  });

  it("is not accepted when both cannot be committed, and has no outcome", async () => {
    const other = new SqlDatabase(path.join(folder, "server.db"));
    let finished: Promise<unknown> | undefined;
    const accepting = accept(1000, (head) => {
      finished = ledger.finish(head, done(Buffer.from([2])), facts).catch(String);
      return true;
    });
    other.exec("BEGIN IMMEDIATE");
    await expect(accepting).rejects.toMatchObject({ code: "SQLITE_BUSY" });
    expect(await finished).toContain("database is locked");
    other.exec("ROLLBACK");
    other.close();
    expect(ledger.find("r")).toBeUndefined();
    expect(await accept(0, () => false)).toMatchObject({ requestId: "r" });
  });

  it("stands when the outcome alone cannot be written", async () => {
    let finished: Promise<unknown> | undefined;
    const head = await accept(1000, (begun) => {
      finished = ledger
        .finish(begun, done(Buffer.from([2])), facts, () => {
          throw new Error("not this");
        })
        .catch(String);
      return true;
    });
    expect(await finished).toBe("Error: not this");
    expect(store.requests.pending()).toHaveLength(1);
    await ledger.finish(head!, { state: "failed", error: "no", category: "server" }, facts);
    expect(await ledger.outcome("r")).toMatchObject({ state: "failed" });
  });

  it("stays the first of its id when the outcome alone cannot be written", async () => {
    let finished: Promise<unknown> | undefined;
    const refuse = () => {
      throw new Error("not this");
    };
    const first = accept(1000, (begun) => {
      finished = ledger.finish(begun, done(Buffer.from([2])), facts, refuse).catch(String);
      return true;
    });
    const second = ledger.accept(draft(Buffer.from([1])), () => {});
    expect(await first).toMatchObject({ requestId: "r" });
    expect(await second).toBeNull();
    expect(await finished).toBe("Error: not this");
  });

  it("does not wait for an outcome when nobody works on it yet", async () => {
    const accepting = accept(1000, () => false);
    for (let turn = 0; turn < 3; turn++) await new Promise((next) => setImmediate(next));
    expect(store.requests.pending()).toHaveLength(1);
    await accepting;
  });

  it.each([2, 1e9])("is accepted by itself when that takes longer (%d ms)", async (holdMs) => {
    expect(await accept(holdMs, () => true)).toMatchObject({ state: "pending" });
    expect(store.requests.pending()).toHaveLength(1);
  });
});

it("commits a request without a pause once its work is done", async () => {
  let begun: RequestHead | undefined;
  const accepting = ledger.accept(
    draft(Buffer.from([1])),
    () => {},
    (head) => {
      begun = head;
      return true;
    },
  );
  const turns = async (count: number): Promise<void> => {
    for (let turn = 0; turn < count; turn++) await new Promise((next) => setImmediate(next));
  };
  await turns(1);
  void ledger.finish(begun!, done(Buffer.from([2])), facts);
  await turns(4);
  expect(store.requests.head("r")).toMatchObject({ state: "done" });
  await accepting;
});

it("tells those who begin early what a request asks for, unless it is refused", async () => {
  const payload = Buffer.from([1, 2]);
  const heads: RequestHead[] = [];
  const begin = (head: RequestHead): boolean => heads.push(head) > 0;
  const refuse = () => {
    throw new Error("no");
  };
  const turn = () => new Promise((next) => setImmediate(next));
  const refused = expect(ledger.accept(draft(payload), refuse, begin, 1000)).rejects.toThrow("no");
  await turn();
  expect(await ledger.payloadOf(heads[0]!)).toEqual(payload);
  await refused;
  await expect(ledger.payloadOf(heads[0]!)).rejects.toThrow("no");

  const accepting = ledger.accept(draft(payload), () => {}, begin, 1000);
  await turn();
  expect(await ledger.payloadOf(heads[1]!)).toEqual(payload);
  await accepting;
  expect(Buffer.from(await ledger.payloadOf(heads[1]!))).toEqual(payload);
});

it("has no outcome for work on a request that is refused or known", async () => {
  const finished: Promise<unknown>[] = [];
  const begin = (head: RequestHead): boolean => {
    finished.push(ledger.finish(head, done(Buffer.from([2])), facts).catch(String));
    return true;
  };
  const refuse = () => {
    throw new Error("no");
  };
  await expect(ledger.accept(draft(Buffer.from([1])), refuse, begin)).rejects.toThrow("no");
  expect(ledger.find("r")).toBeUndefined();
  const head = await ledger.accept(draft(Buffer.from([1])), () => {});
  expect(await ledger.accept(draft(Buffer.from([1])), () => {}, begin)).toBeNull();
  expect(await Promise.all(finished)).toEqual([
    "Error: no",
    "Error: the request was accepted before",
  ]);
  expect(ledger.find("r")).toEqual(head);
});

it("keeps an outcome until the disk takes it", async () => {
  const head = (await ledger.accept(draft(Buffer.from([1])), () => {}))!;
  // Somebody else writes to the database and does not come to an end.
  const other = new SqlDatabase(path.join(folder, "server.db"));
  other.exec("BEGIN IMMEDIATE");
  const waiting = ledger.waiters.wait("r", 60_000, new AbortController().signal);
  const finished = ledger.finish(head, done(Buffer.from([2])), facts);
  await clock.advance(2500);
  expect(ledger.waiters.count).toBe(1);
  other.exec("ROLLBACK");
  other.close();
  await clock.advance(1000);
  await finished;
  expect(await waiting).toMatchObject({ state: "done" });
});

it("records nothing after it was sealed, so that the request runs again at the next start", async () => {
  const head = (await ledger.accept(draft(Buffer.from([1])), () => {}))!;
  ledger.seal();
  await ledger.finish(head, done(Buffer.from([2])), facts);
  expect(store.requests.pending()).toHaveLength(1);
});
