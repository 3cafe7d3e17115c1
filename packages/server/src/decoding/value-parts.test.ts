import { expect, it } from "vitest";
import { checkValueParts } from "./value-parts.js";

const many = (count: number, make: () => unknown): unknown[] => Array.from({ length: count }, make);
const fields = (count: number): object =>
  Object.fromEntries(many(count, () => 0).map((value, n) => [`k${n}`, value]));

it("takes long lists and bytes, and things up to their number", () => {
  checkValueParts({ prompt: many(262_144, () => 1), bytes: new Uint8Array(1e6) });
  checkValueParts({ things: many(19_990, () => ({})) });
  checkValueParts(fields(9990));
  checkValueParts({ logit_bias: Object.fromEntries(many(16_384, () => -1).entries()) });
  checkValueParts(null);
});

it("refuses a great many things, wherever they are", () => {
  const lists = { a: { b: many(200, () => many(200, () => ({}))) } };
  const texts = { a: many(300_001, () => "") };
  for (const value of [many(20_001, () => ({})), lists, texts, { a: fields(10_001) }]) {
    expect(() => checkValueParts(value)).toThrow("stands for too much");
  }
});
