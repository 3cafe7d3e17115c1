import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ManualClock } from "../../test/support/manual-clock.js";
import { createLogger } from "../log/logger.js";
import { Store } from "../store/store.js";
import type { PreparedExhibits } from "./data-exhibits.js";
import { EventHub } from "./event-hub.js";
import { ExhibitKeeper } from "./exhibit-keeper.js";

let folder: string;
let store: Store;
let log: string[];
let clock: ManualClock;
let keeper: ExhibitKeeper;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-exhibits-"));
  store = new Store(folder, { durability: "process" });
  log = [];
  clock = new ManualClock();
  const logger = createLogger("warn", (line) => log.push(line));
  keeper = new ExhibitKeeper({ store, logger, clock, hub: new EventHub(clock, store.logs) });
});

afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

it("has everything on disk once it is settled, in the order in which it came", async () => {
  for (let step = 0; step < 20; step++) keeper.add(placeOf("run", step), oneToken);
  await keeper.settled();
  expect(store.exhibits.steps("run", "datum")).toEqual([...Array(20).keys()]);
});

it("makes nothing while the request that it comes from is being answered", async () => {
  let isMade = false;
  keeper.add(placeOf("run", 0), () => {
    isMade = true;
    return oneToken();
  });
  await clock.advance(9);
  expect(isMade).toBe(false);
  await clock.advance(1);
  expect(isMade).toBe(true);
  await keeper.settled();
});

it("leaves out what waits of a run that is forgotten", async () => {
  keeper.add(placeOf("kept", 0), oneToken);
  keeper.add(placeOf("forgotten", 0), oneToken);
  await new Promise((resolve) => setImmediate(resolve));
  keeper.add(placeOf("forgotten", 1), oneToken);
  keeper.forget("forgotten");
  await keeper.settled();
  expect(store.exhibits.steps("kept", "datum")).toEqual([0]);
  expect(store.exhibits.steps("forgotten", "datum")).toEqual([]);
});

it("goes on when some cannot be made", async () => {
  keeper.add(placeOf("run", 0), () => {
    throw new Error("odd data");
  });
  keeper.add(placeOf("run", 1), oneToken);
  await keeper.settled();
  expect(store.exhibits.steps("run", "datum")).toEqual([1]);
  expect(log).toEqual([expect.stringContaining("odd data")]);
});

function placeOf(logId: string, step: number) {
  return { owner: "o", logId, modelId: null, step, kind: "datum", split: "train", at: 0 } as const;
}

function oneToken(): PreparedExhibits {
  const head = {
    group: null,
    index: 0,
    reward: null,
    advantage: null,
    nll: null,
    tokenCount: 1,
    trainedCount: 1,
    stopReason: null,
  };
  return { heads: [head], contents: [{ columns: { tokens: [1] } }], seen: 1 };
}
