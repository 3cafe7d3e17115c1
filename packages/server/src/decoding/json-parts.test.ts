import { expect, it } from "vitest";
import { checkJsonParts } from "./json-parts.js";

const megabytes = (item: string): string => `[${`${item},`.repeat(2 ** 20)}${item}]`;

it("refuses JSON that unfolds to a great many things, however short it is", () => {
  for (const item of ["{}", "[]", '{"a":1}', '[["a"]]']) {
    expect(() => checkJsonParts(megabytes(item))).toThrow("objects, lists and fields");
  }
  expect(() => checkJsonParts("[".repeat(2 ** 20))).toThrow("objects, lists and fields");
});

it("takes long lists of numbers and texts, whatever the texts say", () => {
  for (const item of ["1", '""', String.raw`"[{:\"{["`, '"\\\\"']) checkJsonParts(megabytes(item));
  checkJsonParts(JSON.stringify({ text: '[{"a":'.repeat(2 ** 20) }));
});
