import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { textWidth } from "../terminal/text-width.js";
import { renderTable } from "./table.js";

const bold = (text: string): string => text;

function render(rows: string[][], columns?: number): string[] {
  return renderTable({ title: "Things", headers: ["ID", "Name", "Path"], rows }, { columns, bold });
}

describe("renderTable", () => {
  it("aligns columns under their headers", () => {
    expect(
      render([
        ["1", "long name", "/a"],
        ["22", "b", "/b"],
      ]),
    ).toEqual([
      "Things",
      "",
      "ID  Name       Path",
      "\u2500\u2500  \u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500  \u2500\u2500\u2500\u2500",
      "1   long name  /a",
      "22  b          /b",
    ]);
  });

  it("shows the title alone when there is nothing", () => {
    expect(render([])).toEqual(["Things"]);
  });

  it("cuts the widest column first, with an ellipsis", () => {
    const [, , , , row] = render([["id-1", "name", "/a/very/long/path"]], 21);
    expect(row).toBe("id-1  name  /a/very/\u2026");
  });

  it("counts wide characters as two, and shows control characters harmlessly", () => {
    const [, , , , row] = render([["\u6F22\u5B57", "a\u001B[2Jb", "x\ny"]]);
    expect(row).toBe("\u6F22\u5B57  a\uFFFD[2Jb  x\u23CEy");
  });

  it("never wraps, and cuts the first column only where the others leave it no room", () => {
    const cell = fc.string({ maxLength: 60, unit: "grapheme" });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.stringMatching(/^[a-z0-9:-]{1,30}$/), cell, cell), { minLength: 1 }),
        fc.integer({ min: 1, max: 120 }),
        (rows, columns) => {
          const lines = render(rows, columns).slice(2);
          const first = Math.max(2, ...rows.map(([id]) => id.length));
          const widest = Math.max(...lines.map(textWidth));
          expect(widest).toBeLessThanOrEqual(columns);
          if (columns < first + 2 * (2 + 6)) return;
          for (const [index, [id]] of rows.entries()) {
            expect(lines[index + 2]!.startsWith(id)).toBe(true);
          }
        },
      ),
    );
  });
});
