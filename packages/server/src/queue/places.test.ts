import { expect, it } from "vitest";
import { Places } from "./places.js";

const never = new AbortController().signal;

it("lets owners take turns when places become free", async () => {
  const places = new Places(1, 10);
  const order: string[] = [];
  const first = await places.take("a", never);
  const run = async (owner: string, name: string): Promise<void> => {
    const free = await places.take(owner, never);
    order.push(name);
    free();
    free();
  };
  const all = [run("a", "a1"), run("a", "a2"), run("b", "b1")];
  expect(places.waiting).toBe(3);
  first();
  await Promise.all(all);
  expect(order).toEqual(["a1", "b1", "a2"]);
  expect([places.taken, places.waiting]).toEqual([0, 0]);
});

it("refuses when too many wait, and leaves room for other owners", async () => {
  const places = new Places(1, 4);
  const free = await places.take("a", never);
  const waiting = [places.take("a", never), places.take("a", never)];
  await expect(places.take("a", never)).rejects.toMatchObject({
    status: 429,
    headers: { "retry-after-ms": "1000" },
  });
  const other = places.take("b", never);
  free();
  await Promise.all([...waiting, other].map(async (one) => (await one)()));
  expect(places.taken).toBe(0);
});

it("forgets who gives up waiting", async () => {
  const places = new Places(1, 4);
  const free = await places.take("a", never);
  const abort = new AbortController();
  const waiting = places.take("a", abort.signal);
  abort.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  expect(places.waiting).toBe(0);
  free();
  expect(places.taken).toBe(0);
});
