import { setMaxListeners } from "node:events";
import fc from "fast-check";
import { expect, it } from "vitest";
import { Scheduler, type Turn } from "./scheduler.js";

const never = new AbortController().signal;
setMaxListeners(0, never);

/** Lets groups of owners ask again and again at a resource with one turn; notes the turns that were had. */
class Crowd {
  readonly scheduler = new Scheduler({ engine: { capacity: 1 } });
  readonly log: { owner: string; group: string; cost: number }[] = [];
  #current: { turn: Turn; owner: string; group: string; cost: number } | undefined;

  ask(owner: string, group: string, cost: number, again = true): void {
    void this.scheduler.turn({ resource: "engine", owner, group }, never).then((turn) => {
      this.#current = { turn, owner, group, cost };
      if (again) queueMicrotask(() => this.ask(owner, group, cost));
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

/** The order in which turns are given when one is free at a time. */
async function orderOf(requests: readonly string[], nameOwner: (name: string) => string) {
  const scheduler = new Scheduler({ samples: { capacity: 1 } });
  const order: string[] = [];
  const first = await scheduler.turn({ resource: "samples", owner: "", group: "" }, never);
  const all = requests.map(async (name) => {
    const request = { resource: "samples", owner: nameOwner(name), group: name[0]! } as const;
    const turn = await scheduler.turn(request, never);
    order.push(name);
    turn.end();
    turn.end();
  });
  expect(scheduler.load("samples")).toMatchObject({ taken: 1, waiting: requests.length });
  first.end();
  await Promise.all(all);
  expect(scheduler.load("samples")).toEqual({ taken: 0, waiting: 0, groups: 0 });
  return order;
}

it("lets an owner wait for one turn of another, however many groups that one has", async () => {
  const crowd = new Crowd();
  for (let group = 0; group < 500; group++) crowd.ask("many", `m${group}`, 1000);
  await crowd.step();
  await crowd.step();
  crowd.ask("one", "x", 1000, false);
  await crowd.step();
  await crowd.step();
  expect(crowd.log.map(({ owner }) => owner)).toEqual(["many", "many", "many", "one"]);
});

it("shares by cost among owners, and among the groups of one", async () => {
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
      for (const [owner, groups] of owners.entries()) {
        for (const [group, cost] of groups.entries()) crowd.ask(`o${owner}`, `m${group}`, cost);
      }
      for (let turn = 0; turn < 300; turn++) await crowd.step();
      const spent = (owner: string, group?: string): number =>
        crowd.log
          .filter((entry) => entry.owner === owner && (group ?? entry.group) === entry.group)
          .reduce((sum, { cost }) => sum + cost, 0);
      const totals = owners.map((_, owner) => spent(`o${owner}`));
      // No owner is ahead by more than the largest turns of both sides and a round.
      expect(Math.max(...totals) - Math.min(...totals)).toBeLessThan(2 * 4000 + 64);
      for (const [owner, groups] of owners.entries()) {
        const shares = groups.map((_, group) => spent(`o${owner}`, `m${group}`));
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

it("charges the cost of a request when its turn begins", async () => {
  const scheduler = new Scheduler({ engine: { capacity: 2 } });
  const order: string[] = [];
  const ask = async (owner: string, cost: number): Promise<Turn> => {
    const turn = await scheduler.turn({ resource: "engine", owner, group: "", cost }, never);
    order.push(owner);
    return turn;
  };
  const [first] = await Promise.all([ask("small", 64), ask("large", 5000)]);
  const waiting = [ask("large", 64), ask("small", 64), ask("small", 64)];
  first.end();
  (await waiting[1]!).end();
  await waiting[2];
  // The large turn has not ended, and its owner waits for as much of the other.
  expect(order).toEqual(["small", "large", "small", "small"]);
});

it("prefers a cheaper group of an owner, but not for long", async () => {
  const scheduler = new Scheduler({ engine: { capacity: 1 } });
  const order: string[] = [];
  const ask = async (group: string): Promise<void> => {
    const isPreferred = (): boolean => group === "cheap";
    const request = { resource: "engine", owner: "me", group, isPreferred } as const;
    const turn = await scheduler.turn(request, never);
    order.push(group);
    if (group === "cheap" && order.length < 8) void ask("cheap");
    turn.end(2000);
  };
  await Promise.all([ask("costly"), ask("costly"), ask("cheap")]);
  await settle();
  expect(order.slice(0, 6).join(" ")).toBe("costly cheap cheap cheap cheap costly");
});

it("lets groups take turns and keeps the order within each", async () => {
  const order = await orderOf(["a1", "a2", "a3", "b1", "c1", "b2"], () => "o");
  expect(order).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
});

it("lets owners take turns, however many groups each of them has", async () => {
  const order = await orderOf(["a1", "b1", "c1", "x1", "x2"], (name) =>
    name.startsWith("x") ? "one" : "many",
  );
  expect(order).toEqual(["a1", "x1", "b1", "x2", "c1"]);
});

it("gives one more turn while anything is free, however large", async () => {
  const scheduler = new Scheduler({ samples: { capacity: 4 } });
  const ask = (group: string, size: number): Promise<Turn> =>
    scheduler.turn({ resource: "samples", owner: "me", group, size }, never);
  const [one, large] = await Promise.all([ask("a", 1), ask("b", 100)]);
  const waiting = ask("c", 1);
  one.end();
  await settle();
  expect(scheduler.load("samples")).toMatchObject({ taken: 100, waiting: 1 });
  large.end();
  (await waiting).end();
  expect(scheduler.load("samples").taken).toBe(0);
});

it("gives an owner no more turns than the bound, and passes over owners at the bound", async () => {
  const scheduler = new Scheduler({ threads: { capacity: 2, maxPerOwner: 1 } });
  const order: string[] = [];
  const ask = async (owner: string): Promise<Turn> => {
    const turn = await scheduler.turn({ resource: "threads", owner, group: "" }, never);
    order.push(owner);
    return turn;
  };
  const [first] = [ask("a"), ask("a"), ask("b")];
  await settle();
  expect(order).toEqual(["a", "b"]);
  (await first).end();
  await settle();
  expect(order).toEqual(["a", "b", "a"]);
});

it("has no room for more when too many wait, and leaves room for other owners", async () => {
  const scheduler = new Scheduler({ streams: { capacity: 1, maxWaiting: 4 } });
  const ask = (owner: string): Promise<Turn> =>
    scheduler.turn({ resource: "streams", owner, group: "" }, never);
  const hasRoom = (owner: string): boolean => scheduler.hasRoom({ resource: "streams", owner });
  const turn = await ask("a");
  expect(hasRoom("a")).toBe(true);
  const waiting = [ask("a"), ask("a")];
  expect([hasRoom("a"), hasRoom("b")]).toEqual([false, true]);
  turn.end();
  await Promise.all(waiting.map(async (one) => (await one).end()));
  expect(hasRoom("a")).toBe(true);
});

it("gives a turn at once within a share of what others leave, or none", () => {
  const scheduler = new Scheduler({ polls: { capacity: 4 } });
  const poll = (owner: string): Turn | undefined =>
    scheduler.tryTurn({ resource: "polls", owner }, 1 / 2);
  const turns = [poll("a"), poll("a")];
  expect(turns).not.toContain(undefined);
  expect(poll("a")).toBeUndefined();
  expect(poll("b")).toBeDefined();
  expect(poll("b")).toBeUndefined();
  turns[0]?.end();
  turns[0]?.end();
  expect(scheduler.turnsOf({ resource: "polls", owner: "a" })).toBe(1);
  expect(poll("a")).toBeDefined();
  expect(poll("a")).toBeUndefined();
});

it("reports who else waits, and forgets requests that are given up", async () => {
  const scheduler = new Scheduler({ engine: { capacity: 1 } });
  const request = (owner: string, group: string) => ({ resource: "engine", owner, group }) as const;
  const first = await scheduler.turn(request("a", "a1"), never);
  const abort = new AbortController();
  const given = scheduler.turn(request("a", "a2"), abort.signal);
  const other = scheduler.turn(request("b", "b1"), never);
  expect(scheduler.contention(request("a", "a1"))).toBeUndefined();
  expect(scheduler.contention(request("a", "a2"))).toEqual({ owners: 2, groups: 1 });
  abort.abort(new Error("no longer wanted"));
  await expect(given).rejects.toThrow("no longer wanted");
  await expect(scheduler.turn(request("c", "c1"), abort.signal)).rejects.toThrow("no longer");
  expect(scheduler.contention(request("a", "a2"))).toBeUndefined();
  first.end();
  (await other).end();
  expect(scheduler.load("engine")).toEqual({ taken: 0, waiting: 0, groups: 0 });
});

it("leaves an owner waiting with its share of what others leave, and counts what it has spent", async () => {
  const scheduler = new Scheduler({ samples: { capacity: 8, maxShare: 1 / 2 } });
  const ask = (owner: string, size: number) =>
    scheduler.turn({ resource: "samples", owner, group: "", size, cost: 10 }, never);
  const turns = await Promise.all([ask("ann", 2), ask("ann", 2)]);
  const third = ask("ann", 1);
  expect(scheduler.load("samples")).toMatchObject({ taken: 4, waiting: 1 });
  const other = await ask("bob", 1);
  turns[0].end(200);
  await third;
  other.end();
  expect(scheduler.accounts()).toEqual([
    { resource: "samples", owner: "ann", spent: 200, turns: 2, waiting: 0 },
    { resource: "samples", owner: "bob", spent: 10, turns: 0, waiting: 0 },
  ]);
});
