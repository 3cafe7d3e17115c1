import { expect, it } from "vitest";
import { checkJsonParts } from "./json-parts.js";

const listOf = (count: number, item: string): string => `[${`${item},`.repeat(count - 1)}${item}]`;

it("refuses JSON that unfolds to a great many things, however short it is", () => {
  for (const item of ["{}", "[]", '{"a":1}', '[["a"]]']) {
    expect(() => checkJsonParts(listOf(60_000, item))).toThrow("60000 objects, lists and fields");
  }
  for (const item of ["1", '""', "null"]) {
    expect(() => checkJsonParts(listOf(300_002, item))).toThrow("300000 entries");
  }
  for (const open of ["[", '{"a":']) {
    expect(() => checkJsonParts(open.repeat(1001))).toThrow("1000 lists and objects inside each");
  }
});

it("takes long lists of numbers and texts, whatever the texts say", () => {
  for (const item of ["1", '""', String.raw`"[{:\"{["`, '"\\\\"'])
    checkJsonParts(listOf(300_001, item));
  checkJsonParts(`${"[".repeat(1000)}${"]".repeat(1000)}${"[]".repeat(1000)}`);
  checkJsonParts(JSON.stringify({ text: '[{"a":'.repeat(2 ** 20) }));
});
