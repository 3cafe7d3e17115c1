import { expect, it } from "vitest";
import { BodyBudget } from "./body-budget.js";

const refusal = "too many large requests";

it("gives an owner half of what the others leave, until room is given back", () => {
  const budget = new BodyBudget(100);
  const [first, second, other] = [budget.open("a"), budget.open("a"), budget.open("b")];
  first.take(30);
  second.take(20);
  expect(() => second.take(1)).toThrow(refusal);
  other.take(25);
  expect(() => other.take(1)).toThrow(refusal);
  first.release();
  other.take(10);
  second.take(12);
  expect(() => second.take(1)).toThrow(refusal);
});

it("always has room for an owner who holds nothing", () => {
  const budget = new BodyBudget(1024);
  const rooms = Array.from({ length: 8 }, (_, owner) => budget.open(`owner ${owner}`));
  for (const [index, room] of rooms.entries()) room.take(512 >> index);
  const late = budget.open("late");
  late.take(1);
  expect(() => late.take(2)).toThrow(refusal);
});

it("gives room back once", () => {
  const budget = new BodyBudget(100);
  const [first, second] = [budget.open("a"), budget.open("b")];
  first.take(50);
  second.take(25);
  first.release();
  first.release();
  expect(() => budget.open("c").take(38)).toThrow(refusal);
});
