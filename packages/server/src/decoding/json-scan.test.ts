import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { scanJson } from "./json-scan.js";
import { unfoldJson } from "./unfold-json.js";

const ample = 1e9;
const listOf = (count: number, item: (n: number) => string): string =>
  `[${Array.from({ length: count }, (_, n) => item(n)).join(",")}]`;
const passes = (json: string, maxCost: number): boolean => {
  try {
    scanJson(json, maxCost);
    return true;
  } catch {
    return false;
  }
};

describe("JSON that is looked at", () => {
  const numbers = fc.array(fc.oneof(fc.integer(), fc.double({ noNaN: true })), { minLength: 600 });
  const { value: anything } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fc.jsonValue(),
      numbers,
      fc.array(tie("value"), { maxLength: 4 }),
      fc.dictionary(fc.string({ unit: "binary" }), tie("value"), { maxKeys: 4 }),
    ),
  }));

  it("says the same when it is unfolded, whatever it says", () => {
    let apart = 0;
    fc.assert(
      fc.property(anything, fc.constantFrom(0, 1, "\t"), (value, indent) => {
        const json = JSON.stringify(value, null, indent);
        const scanned = scanJson(json, ample);
        apart += scanned.lists.length;
        expect(unfoldJson(scanned)).toEqual(JSON.parse(json));
      }),
      { numRuns: 300 },
    );
    expect(apart).toBeGreaterThan(0);
  });

  it("comes without its long lists of numbers, wherever they are", () => {
    const tokens = Array.from({ length: 1000 }, (_, n) => n);
    const value = { 'a "quoted" [name]': [{ "": tokens }, "[1,2]"], __proto__x: [[tokens]] };
    const { text, lists } = scanJson(JSON.stringify(value), ample);
    expect(text.length).toBeLessThan(100);
    expect(lists.map(({ path }) => path)).toEqual([
      ['a "quoted" [name]', 0, ""],
      ["__proto__x", 0, 0],
    ]);
  });

  it("changes no prototype", () => {
    const list = `{"__proto__":${listOf(1000, String)}}`;
    const value = unfoldJson(scanJson(list, ample)) as object;
    expect(Object.keys(value)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    // The prototype of lists is an empty list.
    const { a } = unfoldJson(scanJson(`{"a":${list},"a":[]}`, ample)) as { a: object };
    expect(Object.getPrototypeOf(a)).toBe(Array.prototype);
  });

  it("takes nothing out of texts", () => {
    const json = JSON.stringify({ text: `"[${"1,".repeat(1000)}1]`, escaped: "\\" });
    expect(scanJson(json, ample)).toEqual({ text: json, lists: [] });
  });

  it("keeps the last of fields with the same name", () => {
    const long = listOf(1000, String);
    for (const last of ['"text"', "{}", "[1]", "null"]) {
      const json = `{"a":{"b":${long}},"a":${last},"c":${long},"c":${last}}`;
      expect(unfoldJson(scanJson(json, ample))).toEqual(JSON.parse(json));
    }
  });

  it("is left as it is where it is no JSON", () => {
    const broken = [
      `[${"1,".repeat(1000)}]`,
      `[${"01,".repeat(1000)}1]`,
      `{"\\x":${listOf(1000, String)}}`,
    ];
    for (const json of [...broken, "]]}}", '"', ":", "{,:[", "\\"]) {
      expect(scanJson(json, ample)).toEqual({ text: json, lists: [] });
    }
  });
});

describe("JSON that stands for too much", () => {
  it("is refused by what it takes to make it, however short it is", () => {
    const kinds: Readonly<Record<string, readonly [costly: (n: number) => string, most: number]>> =
      {
        objects: [() => "{}", 66_000],
        lists: [() => "[]", 66_000],
        texts: [(n) => `"${n.toString(36)}"`, 28_000],
        "numbers between others": [(n) => (n === 0 ? "null" : "1"), 190_000],
        fractions: [(n) => (n === 0 ? "null" : "1.5"), 66_000],
        "objects of the same names": [() => '{"a":1,"b":2}', 24_500],
        "fields of tokens": [(n) => `{"${n}":1}`, 39_500],
        "objects of different names": [(n) => `{"k${n}":1}`, 5200],
        "long lists": [() => listOf(1000, () => "1"), 780],
      };
    for (const [name, [item, most]] of Object.entries(kinds)) {
      expect(passes(listOf(most, item), 200_000), name).toBe(true);
      expect(passes(listOf(Math.floor(most * 1.1), item), 200_000), name).toBe(false);
    }
  });

  it("counts names in another order as different", () => {
    const rotated = (by: number): string => {
      const names = Array.from({ length: 12 }, (_, n) => `"k${(n + by) % 12}":1`);
      return `{${names.join(",")}}`;
    };
    expect(
      passes(
        listOf(12, () => rotated(0)),
        2000,
      ),
    ).toBe(true);
    expect(passes(listOf(12, rotated), 2000)).toBe(false);
  });

  it("is refused where it has lists and objects inside each other without end", () => {
    for (const open of ["[", '{"a":']) {
      expect(passes(open.repeat(1000), ample)).toBe(true);
      expect(() => scanJson(open.repeat(1001), ample)).toThrow(
        "1000 lists and objects inside each",
      );
    }
    expect(passes(`${"[".repeat(1000)}${"]".repeat(1000)}${"[]".repeat(1000)}`, ample)).toBe(true);
  });

  it("is told what is taken", () => {
    expect(() =>
      scanJson(
        listOf(70_000, () => "{}"),
        200_000,
      ),
    ).toThrow("100,000 objects and lists, 33,333 texts, 200,000 numbers or 5,714 different names");
  });

  it("is not a long text, whatever it says", () => {
    expect(passes(JSON.stringify({ text: '[{"a":'.repeat(2 ** 20) }), 200_000)).toBe(true);
  });
});
