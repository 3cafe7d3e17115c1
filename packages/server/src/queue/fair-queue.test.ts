import { expect, it } from "vitest";
import { FairQueue } from "./fair-queue.js";

it("lets groups take turns and keeps the order within each", () => {
  const queue = new FairQueue<string>();
  for (const entry of ["a1", "a2", "a3", "b1", "c1", "b2"]) queue.add(entry[0]!, entry);
  const order: string[] = [];
  for (let entry = queue.take(); entry; entry = queue.take()) order.push(entry);
  expect(order).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
  expect(queue.size).toBe(0);
});

it("removes what matches and keeps the count right", () => {
  const queue = new FairQueue<number>();
  for (const entry of [1, 2, 3, 4]) queue.add("g", entry);
  expect(queue.remove("g", (entry) => entry % 2 === 0)).toEqual([2, 4]);
  expect(queue.size).toBe(2);
  expect([queue.take(), queue.take(), queue.take()]).toEqual([1, 3, undefined]);
});
