import fc from "fast-check";
import { expect, it } from "vitest";
import { parseOptions } from "./parse-options.js";

const options = {
  runId: { type: "string", description: "" },
  limit: { type: "integer", short: "l", default: 20, description: "" },
  rate: { type: "number", description: "" },
  tag: { type: "string", multiple: true, description: "" },
  yes: { type: "flag", short: "y", description: "" },
} as const;
const args = {
  first: { description: "" },
  rest: { description: "", optional: true, multiple: true },
} as const;

function parse(...line: string[]) {
  return parseOptions(line, options, args);
}

it("fills in defaults", () => {
  expect(parse("a")).toEqual({
    options: { runId: undefined, limit: 20, rate: undefined, tag: [], yes: false },
    arguments: { first: "a", rest: [] },
  });
});

it("takes options in any order and form", () => {
  const line = ["-y", "--tag=x", "a", "-l5", "b", "--tag", "y", "--run-id", "r", "c"];
  expect(parse(...line)).toEqual({
    options: { runId: "r", limit: 5, rate: undefined, tag: ["x", "y"], yes: true },
    arguments: { first: "a", rest: ["b", "c"] },
  });
});

it("uses the last value of a repeated option", () => {
  expect(parse("a", "--limit", "1", "--limit", "2").options["limit"]).toBe(2);
});

it("keeps words after -- unchanged", () => {
  expect(parse("a", "--", "--yes", "-l").arguments).toEqual({ first: "a", rest: ["--yes", "-l"] });
});

it("takes negative numbers, but no option for a value", () => {
  expect(parse("a", "--rate", "-0.5").options["rate"]).toBe(-0.5);
  expect(() => parse("a", "--run-id", "-y")).toThrow(
    "Option '--run-id' requires a value. To pass -y, write --run-id=-y.",
  );
  expect(parse("a", "--run-id=-y").options["runId"]).toBe("-y");
});

it("gives every text back that is written with =", () => {
  fc.assert(
    fc.property(fc.string(), fc.array(fc.string()), (runId, rest) => {
      const parsed = parse(`--run-id=${runId}`, "--", "a", ...rest);
      expect(parsed.options["runId"]).toBe(runId);
      expect(parsed.arguments["rest"]).toEqual(rest);
    }),
  );
});
