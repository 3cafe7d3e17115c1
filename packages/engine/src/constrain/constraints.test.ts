import { expect, it } from "vitest";
import { Constraints } from "./constraints.js";
import type { Grammar } from "./grammar.js";

const texts = ["a", "b", "ab"];
const encoder = new TextEncoder();
const make = (): Constraints =>
  new Constraints(texts.length, (token) => encoder.encode(texts[token]), new Set());

it("caches a grammar and its JSON text as the same constraint", () => {
  const constraints = make();
  const grammar: Grammar = { rules: [{ kind: "text", text: "ab" }], start: 0 };
  const constraint = constraints.get(grammar, []);
  expect(constraint.begin().mask().count).toBe(2);
  expect(constraints.get(JSON.stringify(grammar), [])).toBe(constraint);
  expect(constraints.get(grammar, [1])).not.toBe(constraint);
});

it("caches the failure of a grammar", () => {
  const constraints = make();
  // Begins with itself.
  const endless = JSON.stringify({
    rules: [
      { kind: "text", text: "a" },
      { kind: "sequence", items: [2, 0] },
      { kind: "choice", items: [1, 0] },
    ],
    start: 2,
  });
  const reason = (): unknown => {
    try {
      return constraints.get(endless, []);
    } catch (error) {
      return error;
    }
  };
  const first = reason();
  expect(String(first)).toContain("begins with itself");
  expect(reason()).toBe(first);
});
