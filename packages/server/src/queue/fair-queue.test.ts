import { expect, it } from "vitest";
import { FairQueue } from "./fair-queue.js";

function drain(queue: FairQueue<string>): string[] {
  const order: string[] = [];
  for (let entry = queue.take(); entry; entry = queue.take()) order.push(entry);
  return order;
}

it("lets groups take turns and keeps the order within each", () => {
  const queue = new FairQueue<string>();
  for (const entry of ["a1", "a2", "a3", "b1", "c1", "b2"]) queue.add("o", entry[0]!, entry);
  expect(drain(queue)).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
  expect(queue.size).toBe(0);
});

it("lets owners take turns, however many groups each of them has", () => {
  const queue = new FairQueue<string>();
  for (const group of ["a", "b", "c"]) queue.add("many", group, group);
  for (const entry of ["x1", "x2"]) queue.add("one", "x", entry);
  expect(drain(queue)).toEqual(["a", "x1", "b", "x2", "c"]);
});

it("removes a group and keeps the count right", () => {
  const queue = new FairQueue<string>();
  for (const entry of ["a1", "b1", "a2"]) queue.add("o", entry[0]!, entry);
  expect(queue.remove("o", "a")).toEqual(["a1", "a2"]);
  expect(queue.size).toBe(1);
  expect(queue.remove("p", "a")).toEqual([]);
  expect(drain(queue)).toEqual(["b1"]);
});

it("passes over owners who may not go, and they keep their place", () => {
  const queue = new FairQueue<string>();
  for (const entry of ["a1", "a2", "b1", "c1"]) queue.add(entry[0]!, "", entry);
  expect(queue.take((owner) => owner !== "a")).toBe("b1");
  expect(queue.take((owner) => owner === "x")).toBeUndefined();
  expect(drain(queue)).toEqual(["a1", "c1", "a2"]);
});
