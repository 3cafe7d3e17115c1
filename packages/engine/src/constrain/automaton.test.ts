import { describe, expect, it } from "vitest";
import { Automaton, type State } from "./automaton.js";
import { Constraint } from "./constraint.js";
import type { Grammar, Rule } from "./grammar.js";
import { isAllowed, tokenMask } from "./token-mask.js";
import { makeTokenTable } from "./token-table.js";

const encoder = new TextEncoder();

/** The state of an automaton after a text, or null. */
function follow(grammar: Grammar, text: string): State | null {
  const automaton = new Automaton(grammar);
  let state: State | null = automaton.start;
  for (const byte of encoder.encode(text)) {
    state = state === null ? null : automaton.step(state, byte);
  }
  return state;
}

function grammarOf(start: number, ...rules: Rule[]): Grammar {
  return { rules, start };
}

/** Lists in lists of the letter x: a grammar that needs a stack. */
const nested = grammarOf(
  3,
  { kind: "text", text: "x" },
  { kind: "text", text: "[" },
  { kind: "text", text: "]" },
  { kind: "choice", items: [0, 4] },
  { kind: "sequence", items: [1, 5, 2] },
  { kind: "repeat", item: 3, min: 0, max: null },
);

describe("following a text", () => {
  it("accepts the texts of the grammar and no others", () => {
    expect(follow(nested, "[x[x]]")).toMatchObject({ canEnd: true, mustEnd: true });
    expect(follow(nested, "[x[x]")).toMatchObject({ canEnd: false, mustEnd: false });
    expect(follow(nested, "[x]]")).toBeNull();
    expect(follow(nested, "y")).toBeNull();
  });

  it("counts repetitions between their bounds", () => {
    const two = grammarOf(
      1,
      { kind: "byte", ranges: [[97, 98]] },
      { kind: "repeat", item: 0, min: 2, max: 3 },
    );
    expect(follow(two, "a")?.canEnd).toBe(false);
    expect(follow(two, "ab")).toMatchObject({ canEnd: true, mustEnd: false });
    expect(follow(two, "aba")).toMatchObject({ canEnd: true, mustEnd: true });
    expect(follow(two, "abab")).toBeNull();
  });

  it("refuses more alternatives than can be checked for every byte", () => {
    const anyOf = (count: number): Grammar => {
      const texts = Array.from({ length: count }, (_, n): Rule => ({
        kind: "text",
        text: `${n};`,
      }));
      const items = texts.map((_, n) => n);
      return { rules: [...texts, { kind: "choice", items }], start: count };
    };
    expect(follow(anyOf(4000), "3999;")?.mustEnd).toBe(true);
    expect(() => follow(anyOf(5000), "4999;")).toThrow("too many ways");
  });

  it("refuses rules that are nested more deeply than calls can be", () => {
    const rules = Array.from({ length: 50_000 }, (_, depth): Rule =>
      depth === 0 ? { kind: "text", text: "x" } : { kind: "choice", items: [depth - 1] },
    );
    expect(() => new Automaton({ rules, start: rules.length - 1 })).toThrow("too deeply");
  });

  it("keeps alternatives with a common beginning apart", () => {
    const choice = grammarOf(
      2,
      { kind: "text", text: "same 1" },
      { kind: "text", text: "same 2!" },
      { kind: "choice", items: [0, 1] },
    );
    expect(follow(choice, "same 1")?.mustEnd).toBe(true);
    expect(follow(choice, "same 2")?.canEnd).toBe(false);
    expect(follow(choice, "same 3")).toBeNull();
  });

  it("accepts a repetition of the empty text", () => {
    const empty = grammarOf(
      1,
      { kind: "text", text: "" },
      { kind: "repeat", item: 0, min: 0, max: null },
    );
    expect(follow(empty, "")).toMatchObject({ canEnd: true, mustEnd: true });
  });

  it("needs no more memory for longer repetitions", () => {
    const tail = grammarOf(
      0,
      { kind: "choice", items: [1, 2] },
      { kind: "sequence", items: [2, 0] },
      { kind: "text", text: "a" },
    );
    const automaton = new Automaton(tail);
    let state: State | null = automaton.start;
    for (let i = 0; i < 1000; i++) state = state && automaton.step(state, 97);
    expect(state?.canEnd).toBe(true);
    expect(automaton.size).toBeLessThan(5);
  });

  it("refuses a left-recursive grammar", () => {
    const left = grammarOf(1, { kind: "text", text: "a" }, { kind: "sequence", items: [1, 0] });
    expect(() => new Automaton(left)).toThrow("begins with itself");
  });
});

describe("masks", () => {
  const tokens = ["x", "[", "]", "[x", "x]", "]]", "[[x]]", "xx", "y", "", "x"];
  const bytesOf = (token: number): Uint8Array => encoder.encode(tokens[token]);
  const table = makeTokenTable(tokens.length, bytesOf);

  it("allow exactly the tokens that the grammar accepts", () => {
    const automaton = new Automaton(nested);
    for (const prefix of ["", "[", "[[x", "[x]", "[[xx]"]) {
      let state: State = automaton.start;
      for (const byte of encoder.encode(prefix)) state = automaton.step(state, byte)!;
      const mask = tokenMask(automaton, state, table);
      const expected = tokens.flatMap((text, id) =>
        text !== "" && follow(nested, prefix + text) !== null ? [id] : [],
      );
      expect(tokens.flatMap((_, id) => (isAllowed(mask, id) ? [id] : []))).toEqual(expected);
      expect([...(mask.few ?? [])]).toEqual(expected);
      expect(mask.count).toBe(expected.length);
    }
  });

  it("report when a text is complete, and when no token can continue", () => {
    const text = new Constraint(nested, table, bytesOf).begin();
    text.push(6);
    expect([text.canEnd, text.mustEnd, text.mask().count]).toEqual([true, true, 0]);
    const unsayable = grammarOf(0, { kind: "text", text: "q" });
    expect(() => new Constraint(unsayable, table, bytesOf).begin().mask()).toThrow("no token");
  });
});
