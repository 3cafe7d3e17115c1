import fc from "fast-check";
import { expect, it } from "vitest";
import { parseJson, stringifyJson } from "./json-text.js";

it("keeps integers beyond 2^53 exact and leaves strings alone", () => {
  const text =
    '{"a":9007199254740993,"b":[-12345678901234567890,1.25,1e30],"c":"12345678901234567890 \\" 9007199254740993"}';
  expect(parseJson(text)).toEqual({
    a: 9007199254740993n,
    b: [-12345678901234567890n, 1.25, 1e30],
    c: '12345678901234567890 " 9007199254740993',
  });
  expect(stringifyJson(parseJson(text))).toBe(text.replace("1e30", "1e+30"));
});

it("does not take long fractions for integers", () => {
  expect(parseJson("[-0.10000000149011612]")).toEqual([-0.10000000149011612]);
});

it("parses any JSON to what JSON.parse gives, but for large integers", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.bigInt({ min: 2n ** 54n, max: 2n ** 70n }), (value, big) => {
      const text = stringifyJson({ value, big });
      const parsed = parseJson(text) as { value: unknown; big: unknown };
      expect(parsed.big).toBe(big);
      expect(JSON.parse(JSON.stringify(parsed.value, roundBigIntegers))).toEqual(
        JSON.parse(JSON.stringify(value)),
      );
    }),
  );
});

function roundBigIntegers(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? Number(value) : value;
}

it("throws a SyntaxError for text that is not JSON", () => {
  for (const text of ["", "{", '{"a":12345678901234567890', '"abc', "[1,]"]) {
    expect(() => parseJson(text)).toThrow(SyntaxError);
  }
});
