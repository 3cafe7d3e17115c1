import { expect, it } from "vitest";
import { BodyBudget } from "./body-budget.js";

it("refuses what does not fit beside others until they have given their room back", () => {
  const budget = new BodyBudget(100);
  const first = budget.open();
  const second = budget.open();
  first.take(60);
  second.take(30);
  expect(() => second.take(20)).toThrow("too many large requests");
  first.release();
  second.take(20);
  expect(() => first.take(60)).toThrow("too many large requests");
  second.release();
  first.take(100);
});

it("gives room back once", () => {
  const budget = new BodyBudget(100);
  const [first, second] = [budget.open(), budget.open()];
  first.take(50);
  second.take(50);
  first.release();
  first.release();
  expect(() => budget.open().take(60)).toThrow("too many large requests");
});
