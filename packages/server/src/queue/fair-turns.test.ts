import fc from "fast-check";
import { expect, it } from "vitest";
import { FairTurns, type Turn } from "./fair-turns.js";

const never = (): AbortSignal => new AbortController().signal;

/** Lets models of owners ask again and again; tells who had which turns. */
class Crowd {
  readonly turns = new FairTurns(1);
  readonly log: { owner: string; model: string; cost: number }[] = [];
  #current: { turn: Turn; owner: string; model: string; cost: number } | undefined;

  ask(owner: string, model: string, cost: number, again = true): void {
    void this.turns.take(owner, model, never()).then((turn) => {
      if (!turn) return;
      this.#current = { turn, owner, model, cost };
      if (again) queueMicrotask(() => this.ask(owner, model, cost));
    });
  }

  /** Ends the turn under way. */
  async step(): Promise<void> {
    await settle();
    const current = this.#current;
    if (!current) return;
    this.#current = undefined;
    const { turn, ...entry } = current;
    this.log.push(entry);
    turn.end(entry.cost);
    await settle();
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

it("lets an owner wait for one turn of another, however many models that one has", async () => {
  const crowd = new Crowd();
  for (let model = 0; model < 500; model++) crowd.ask("many", `m${model}`, 1000);
  await crowd.step();
  await crowd.step();
  crowd.ask("one", "x", 1000, false);
  await crowd.step();
  await crowd.step();
  expect(crowd.log.map(({ owner }) => owner)).toEqual(["many", "many", "many", "one"]);
});

it("shares by tokens among owners, and among the models of one", async () => {
  const costs = fc.array(
    fc.array(fc.integer({ min: 64, max: 4000 }), { minLength: 1, maxLength: 4 }),
    {
      minLength: 2,
      maxLength: 4,
    },
  );
  await fc.assert(
    fc.asyncProperty(costs, async (owners) => {
      const crowd = new Crowd();
      for (const [owner, models] of owners.entries()) {
        for (const [model, cost] of models.entries()) crowd.ask(`o${owner}`, `m${model}`, cost);
      }
      for (let turn = 0; turn < 300; turn++) await crowd.step();
      const spent = (owner: string, model?: string): number =>
        crowd.log
          .filter((entry) => entry.owner === owner && (model ?? entry.model) === entry.model)
          .reduce((sum, { cost }) => sum + cost, 0);
      const totals = owners.map((_, owner) => spent(`o${owner}`));
      // Nobody is ahead by more than the largest turns of both sides and a round.
      expect(Math.max(...totals) - Math.min(...totals)).toBeLessThan(2 * 4000 + 64);
      for (const [owner, models] of owners.entries()) {
        const shares = models.map((_, model) => spent(`o${owner}`, `m${model}`));
        expect(Math.max(...shares) - Math.min(...shares)).toBeLessThan(2 * 4000 + 64);
      }
    }),
    { numRuns: 20 },
  );
});

it("remembers a large turn of an owner who asks for one at a time", async () => {
  const crowd = new Crowd();
  for (let round = 0; round < 20; round++) {
    crowd.ask("large", "m", 64_000, false);
    crowd.ask("small", "m", 64, false);
    await crowd.step();
    if (round > 0) crowd.ask("small", "m", 64, false);
    await crowd.step();
  }
  const tail = crowd.log.slice(2);
  expect(tail.filter(({ owner }) => owner === "small").length).toBeGreaterThan(tail.length - 2);
});

it("tells those who wait why, forgets those who give up, and leaves the rest when it stops", async () => {
  const turns = new FairTurns(1);
  const first = await turns.take("a", "a1", never());
  const abort = new AbortController();
  const given = turns.take("a", "a2", abort.signal);
  const left = turns.take("b", "b1", never());
  expect(turns.note("a", "a1")).toBeUndefined();
  expect(turns.note("a", "a2")).toEqual({
    queueState: "paused_capacity",
    reason: "waiting for its turn: 1 of your models wait, and 2 owners take turns",
  });
  abort.abort(new Error("no longer wanted"));
  await expect(given).rejects.toThrow("no longer wanted");
  expect(turns.note("a", "a2")).toBeUndefined();
  turns.pause();
  expect(await left).toBeNull();
  expect(await turns.take("c", "c1", never())).toBeNull();
  first?.end(1);
});
