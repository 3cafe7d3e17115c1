import { describe, expect, it } from "vitest";
import { FairTurns, type WorkKind } from "./turns.js";

/** Runs workers with pieces of fixed duration on a simulated clock; returns the schedule. */
async function simulate(
  workers: readonly { kind: WorkKind; name: string; pieceMs: number; pieces: number }[],
): Promise<string[]> {
  let nowMs = 0;
  const turns = new FairTurns(() => nowMs);
  const log: string[] = [];
  await Promise.all(
    workers.map(async ({ kind, name, pieceMs, pieces }) => {
      const taker = turns.enter(kind);
      for (let piece = 0; piece < pieces; piece++) {
        await taker.take();
        log.push(name);
        nowMs += pieceMs;
        await Promise.resolve();
      }
      taker.leave();
    }),
  );
  return log;
}

describe("FairTurns", () => {
  it("gives both kinds the same time, independent of the length of pieces", async () => {
    const log = await simulate([
      { kind: "train", name: "T", pieceMs: 40, pieces: 10 },
      { kind: "sample", name: "s", pieceMs: 10, pieces: 40 },
    ]);
    const untilBothDone = log.slice(0, log.lastIndexOf("T"));
    const trains = untilBothDone.filter((name) => name === "T").length;
    const samples = untilBothDone.filter((name) => name === "s").length;
    expect(Math.abs(samples - trains * 4)).toBeLessThanOrEqual(8);
  });

  it("never delays a kind that is alone", async () => {
    expect(await simulate([{ kind: "train", name: "T", pieceMs: 5, pieces: 3 }])).toEqual([
      "T",
      "T",
      "T",
    ]);
  });

  it("rotates among workers of one kind", async () => {
    const log = await simulate([
      { kind: "sample", name: "a", pieceMs: 1, pieces: 3 },
      { kind: "sample", name: "b", pieceMs: 1, pieces: 3 },
    ]);
    expect(log.join("")).toBe("ababab");
  });

  it("does not let an idle kind save up time", async () => {
    let nowMs = 0;
    const turns = new FairTurns(() => nowMs);
    const train = turns.enter("train");
    await train.take();
    nowMs += 1000;
    const sample = turns.enter("sample");
    const log: string[] = [];
    const sampling = (async () => {
      for (let i = 0; i < 5; i++) {
        await sample.take();
        log.push("s");
        nowMs += 10;
      }
      sample.leave();
    })();
    for (let i = 0; i < 5; i++) {
      await train.take();
      log.push("T");
      nowMs += 10;
    }
    train.leave();
    await sampling;
    expect(log.slice(0, 6).filter((name) => name === "T").length).toBeGreaterThanOrEqual(2);
  });
});
