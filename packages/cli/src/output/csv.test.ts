import fc from "fast-check";
import { expect, it } from "vitest";
import { csvText } from "./csv.js";

it("has the fields of the first row and those that later rows add", () => {
  const rows = [
    { a: 1, b: null },
    { a: "x", c: true },
  ];
  expect(csvText(rows)).toBe("a,b,c\r\n1,,\r\nx,,true\r\n");
});

it("quotes where necessary, so that every text round-trips", () => {
  fc.assert(
    fc.property(fc.array(fc.string(), { minLength: 1 }), (texts) => {
      const rows = texts.map((text) => ({ text, end: "x" }));
      expect(parseCsv(csvText(rows)).slice(1)).toEqual(texts.map((text) => [text, "x"]));
    }),
  );
});

/** Reads CSV as RFC 4180 has it, cell by cell. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, cell = "", end] of text.matchAll(/("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n)/g)) {
    rows.at(-1)!.push(cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);
    if (end !== ",") rows.push([]);
  }
  return rows.slice(0, -1);
}
