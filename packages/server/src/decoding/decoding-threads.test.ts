import { readdirSync, readFileSync } from "node:fs";
import os from "node:os";
import { afterEach, beforeEach, expect, it } from "vitest";
import { DecodingThreads } from "./decoding-threads.js";

let threads: DecodingThreads;
beforeEach(() => {
  threads = new DecodingThreads();
});
afterEach(() => threads.close());

const limits = { maxDecompressedBytes: 1e9, maxBatchData: 1e9, maxPromptTokens: 1e9 };
const form = { typeName: "UnloadModelRequest", form: "json", isCompressed: false, limits } as const;

/** Work that takes as long as so much text does. */
function decode(owner: string, textBytes = 0): Promise<unknown> {
  const bytes = Buffer.from(
    `{"model_id":"${owner}","type":"unload_model"}${" ".repeat(textBytes)}`,
  );
  return threads.run(owner, { kind: "body", parts: [bytes], form }, [bytes]);
}

it("decodes what one owner sends while it works for another, and one thing of each at a time", async () => {
  // Both threads are open before it begins.
  await Promise.all([decode("ann"), decode("bob")]);
  const order: string[] = [];
  const note = (what: string) => () => order.push(what);
  await Promise.all([
    decode("ann", 2e8).then(note("large of ann")),
    decode("ann").then(note("small of ann")),
    decode("bob").then(note("small of bob")),
  ]);
  expect(order).toEqual(["small of bob", "large of ann", "small of ann"]);
});

it("refuses what comes, waits and runs when it is closed", async () => {
  const running = decode("ann", 5e7);
  const waiting = decode("ann");
  const refused = Promise.allSettled([running, waiting]);
  await threads.close();
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
