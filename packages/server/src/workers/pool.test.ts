import { readdirSync, readFileSync } from "node:fs";
import os from "node:os";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Scheduler } from "../scheduler.js";
import { WorkerPool } from "./pool.js";

let pool: WorkerPool;
beforeEach(() => {
  const scheduler = new Scheduler({ workers: { capacity: 3, maxShare: 2 / 3 } });
  pool = new WorkerPool(scheduler, 3);
});
afterEach(() => pool.close());

const limits = { maxDecompressedBytes: 1e9, maxBatchData: 1e9, maxPromptTokens: 1e9 };
const form = { typeName: "UnloadModelRequest", form: "json", isCompressed: false, limits } as const;

/** Work that takes as long as so much text does. */
function decode(owner: string, textBytes = 0): Promise<unknown> {
  const bytes = Buffer.from(
    `{"model_id":"${owner}","type":"unload_model"}${" ".repeat(textBytes)}`,
  );
  return pool.run(owner, { kind: "body", parts: [bytes], form }, { transfer: [bytes] });
}

it("works for one owner while another has much to do, and for two tasks of one at most", async () => {
  // All workers are open before it begins.
  await Promise.all([decode("ann"), decode("ann"), decode("bob")]);
  const order: string[] = [];
  const note = (what: string) => () => order.push(what);
  await Promise.all([
    decode("ann", 2e8).then(note("large of ann")),
    decode("ann", 2e8).then(note("large of ann")),
    decode("ann").then(note("small of ann")),
    decode("bob").then(note("small of bob")),
  ]);
  expect(order[0]).toBe("small of bob");
  expect(order.indexOf("small of ann")).toBeGreaterThan(1);
});

it("refuses what comes, waits and runs when it is closed", async () => {
  const running = decode("ann", 5e7);
  const waiting = decode("ann");
  const refused = Promise.allSettled([running, waiting]);
  await pool.close();
  for (const { status } of [...(await refused), ...(await Promise.allSettled([decode("bob")]))]) {
    expect(status).toBe("rejected");
  }
});

/** Priorities of this process's threads; the nineteenth field, of which the second may hold spaces. */
function priorities(): readonly number[] {
  return readdirSync("/proc/self/task").map((id) => {
    const fields = readFileSync(`/proc/self/task/${id}/stat`, "utf8").split(") ")[1] ?? "";
    return Number(fields.split(" ")[16]);
  });
}

it.runIf(process.platform === "linux")("lets the event loop go first", async () => {
  const own = os.getPriority();
  expect(new Set(priorities())).toEqual(new Set([own]));
  await decode("ann");
  expect(priorities().filter((priority) => priority > own)).toHaveLength(1);
  expect(os.getPriority()).toBe(own);
});
