import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ManualClock } from "../../test/support/manual-clock.js";
import { defaultLimits } from "../limits.js";
import { createLogger } from "../log/logger.js";
import { Metrics } from "../metrics/metrics.js";
import { identityOf } from "../queue/canonical-payload.js";
import { RequestLedger, type RequestDraft } from "../queue/request-ledger.js";
import { Store } from "../store/store.js";
import { SampleQueue, type SampleOutcome } from "./sample-queue.js";

let folder: string;
let store: Store;
let ledger: RequestLedger;
let metrics: Metrics;
let queue: SampleQueue;
/** What the engine works on, in order; each ends when its entry is called. */
let work: (() => void)[];

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-samples-"));
  store = new Store(folder, { durability: "process" });
  const clock = new ManualClock();
  const logger = createLogger("silent");
  metrics = new Metrics();
  ledger = new RequestLedger(store, clock, logger, metrics);
  work = [];
  queue = new SampleQueue({ store, ledger, clock, logger, limits: defaultLimits }, () => {
    return new Promise((resolve) => work.push(() => resolve(outcome)));
  });
});

afterEach(async () => {
  metrics.close();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const account = { owner: "me", sessionId: null, baseModel: "toy", modelId: null };
const outcome: SampleOutcome = { bytes: Buffer.from([1]), account, usage: [], engineMs: 1 };
const payload = Buffer.from("{}");
const draft: RequestDraft = {
  requestId: "r",
  owner: "me",
  sessionId: null,
  modelId: null,
  samplerId: null,
  seq: null,
  kind: "sample",
  identity: identityOf("sample", payload),
  payload,
};

it("knows the second attempt of a request while the first, which was not accepted, is being given up", async () => {
  const refuse = (): void => {
    throw new Error("no");
  };
  const refused = ledger.accept(draft, refuse, (request, accepted) => {
    queue.begin({ request, numSamples: 1 }, accepted);
    return true;
  });
  await expect(refused).rejects.toThrow("no");
  const request = (await ledger.accept(draft, () => {}))!;
  queue.add({ request, numSamples: 1 });
  expect(work).toHaveLength(2);

  const [endFirst, endSecond] = work;
  endFirst?.();
  await ledger.accepted(request);
  await new Promise((resolve) => setImmediate(resolve));
  expect(queue.note(request)).toMatchObject({ queueState: "active" });
  expect(queue.view()).toMatchObject({ runningSequences: 1 });
  let isPaused = false;
  const pausing = queue.pause().then(() => (isPaused = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(isPaused).toBe(false);

  endSecond?.();
  await pausing;
  expect(await ledger.outcome("r")).toMatchObject({ state: "done" });
  expect(queue.pendingOf("me")).toBe(0);
});
