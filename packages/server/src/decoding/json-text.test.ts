import { expect, it } from "vitest";
import { readJsonTexts } from "./json-text.js";

const read = (text: string, form: "whole" | "lines"): string[] =>
  readJsonTexts(Buffer.from(text), form).map((one) => one.text);

it("keeps the places of lines, empty ones too, but for the end of the last", () => {
  expect(read('{"n":1}\n\n{"n":3}\n', "lines")).toEqual(['{"n":1}', "", '{"n":3}']);
  expect(read("", "lines")).toEqual([""]);
  expect(read('{\n"n":1}\n', "whole")).toEqual(['{\n"n":1}\n']);
});

it("refuses more lines than are taken at a time, whatever they say", () => {
  expect(read("{}\n".repeat(10_000), "lines")).toHaveLength(10_000);
  for (const line of ["{}\n", "\n"]) {
    expect(() => read(line.repeat(10_002), "lines")).toThrow("at most 10000 lines");
  }
});

it("looks at each line for what it would become", () => {
  const objects = `[${"{},".repeat(60_000)}{}]`;
  expect(read(`${objects}\n${objects}`, "lines")).toHaveLength(2);
  expect(() => read(`[${objects},${objects}]`, "whole")).toThrow("stands for too much");
});

it("refuses what is not UTF-8", () => {
  expect(() => readJsonTexts(Uint8Array.of(0x22, 0xff, 0x22), "whole")).toThrow("not UTF-8");
});
