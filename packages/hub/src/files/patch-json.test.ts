import { describe, expect, it } from "vitest";
import { parseJson } from "./json.js";
import { patchJson } from "./patch-json.js";

const text = `{
  "limit": [
    0.0,
    Infinity
  ],
  "name": "a \\"quoted\\", {odd} name",
  "nested": { "tied": true, "epsilon": 1e-05, "dtype": "bfloat16" },
  "dtype": "bfloat16"
}
`;

describe("JSON written by Python", () => {
  it("may hold non-finite numbers", () => {
    expect(parseJson('{"a": [Infinity, -Infinity, 0.0], "b": "Infinity", "c": NaN}')).toEqual({
      a: [Infinity, -Infinity, 0],
      b: "Infinity",
      c: "NaN",
    });
    expect(() => parseJson('{"a": infinity}')).toThrow(SyntaxError);
  });
});

describe("a patched text", () => {
  it("keeps the spelling of unchanged fields", () => {
    expect(patchJson(text, { dtype: "float32", nested: { tied: false, dtype: "float32" } })).toBe(
      text.replace("true", "false").replaceAll('"bfloat16"', '"float32"'),
    );
    expect(patchJson(text, {})).toBe(text);
  });

  it("gets new fields at the end of their object", () => {
    const patched = patchJson(text, { added: [1], nested: { more: null }, other: {} });
    expect(patched).toContain('"dtype": "bfloat16",\n  "added": [1],\n  "other": {}\n}\n');
    expect(patched).toContain('"dtype": "bfloat16", "more": null }');
    expect(patchJson("{}", { a: 1, b: 2 })).toBe('{"a": 1,"b": 2}');
  });

  it("replaces values of any kind, and only fields of its own level", () => {
    const patched = patchJson(text, { limit: 0, tied: 1, name: { x: 1 }, nested: "none" });
    expect(parseJson(patched)).toEqual({
      limit: 0,
      name: { x: 1 },
      nested: "none",
      dtype: "bfloat16",
      tied: 1,
    });
  });
});
