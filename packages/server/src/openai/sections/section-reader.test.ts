import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../request/fields.js";
import type { Tool } from "../request/chat-request.js";
import type { CallFormat } from "../../structure/answer-grammar.js";
import type { SectionEvent } from "./section-event.js";
import { SectionReader, type SectionOptions } from "./section-reader.js";
import { StopCutter } from "./stop-cutter.js";

interface Read {
  content: string;
  reasoning: string;
  calls: { name: string; arguments: string }[];
}

function tool(name: string, properties: JsonObject = {}): Tool {
  return { name, parameters: { type: "object", properties }, json: {} };
}

const tools = [
  tool("add", {
    a: { type: "number" },
    s: { type: "string" },
    ok: { type: ["boolean", "null"] },
    list: { type: "array" },
  }),
  tool("now"),
];

/** Reads a text that comes in the given pieces. */
function read(
  pieces: readonly string[],
  options: Partial<SectionOptions> & { calls?: CallFormat } = {},
): Read {
  const result: Read = { content: "", reasoning: "", calls: [] };
  const take = (event: SectionEvent): void => {
    if (event.kind === "call") result.calls.push({ name: event.name, arguments: "" });
    else if (event.kind === "arguments") result.calls.at(-1)!.arguments += event.text;
    else result[event.kind] += event.text;
  };
  const thinking = { open: "<think>", close: "</think>" };
  const reader = new SectionReader(
    {
      format: { calls: options.calls ?? "tagged", thinking },
      separatesReasoning: true,
      startsThinking: false,
      tools,
      ...options,
    },
    take,
  );
  for (const piece of pieces) reader.push(piece);
  reader.end();
  return result;
}

const call = (name: string, text: string) => ({ name, arguments: text });

const samples: { text: string; want: Partial<Read>; options?: Parameters<typeof read>[1] }[] = [
  { text: "Hello\n", want: { content: "Hello\n" } },
  { text: "<think>a</think>b", want: { reasoning: "a", content: "b" } },
  { text: "<think>\na b\n</think>\n\nb \n", want: { reasoning: "a b", content: "b \n" } },
  {
    text: "a\n</think>\n\nb",
    options: { startsThinking: true },
    want: { reasoning: "a", content: "b" },
  },
  { text: "never closed", options: { startsThinking: true }, want: { reasoning: "never closed" } },
  {
    text: "<think>a</think>b",
    options: { separatesReasoning: false },
    want: { content: "<think>a</think>b" },
  },
  { text: "a </think> <think>b", want: { content: "a </think> <think>b" } },
  {
    text: "<tool_call>x</tool_call>",
    options: { tools: [] },
    want: { content: "<tool_call>x</tool_call>" },
  },
  {
    text: '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
    want: { calls: [call("add", '{"a": 1}')] },
  },
  {
    text: 'I will.\n\n<tool_call>\n{"name": "add", "arguments": {"a":[{"b":"}</tool_call>\\"\\n"}]} }\n</tool_call>\n<tool_call>{"name":"now"}</tool_call>\n',
    want: {
      content: "I will.",
      calls: [call("add", '{"a":[{"b":"}</tool_call>\\"\\n"}]}'), call("now", "{}")],
    },
  },
  {
    text: '<tool_call>{"arguments": {"a": 2}, "name": "add"}</tool_call> bye',
    want: { calls: [call("add", '{"a": 2}')], content: "bye" },
  },
  {
    text: '<tool_call>{"name": "add", "arguments": "{\\"a\\": 3}"}</tool_call>',
    want: { calls: [call("add", '{"a": 3}')] },
  },
  {
    text: "x <tool_call>broken</tool_call>",
    want: { content: "x <tool_call>broken</tool_call>", calls: [] },
  },
  {
    text: '<tool_call>{"name": "unknown", "arguments": {}}',
    want: { content: '<tool_call>{"name": "unknown", "arguments": {}}', calls: [] },
  },
  { text: '<tool_call>{"name": "ad', want: { content: '<tool_call>{"name": "ad', calls: [] } },
  {
    text: '<tool_call>{"name": "add", "arguments": {"a": 1',
    want: { content: "", calls: [call("add", '{"a": 1')] },
  },
  {
    text: '<tool_call>\n<function=add>\n<parameter=a>\n12\n</parameter>\n<parameter=s>\n007\n</parameter>\n<parameter=ok>\nTrue\n</parameter>\n<parameter=list>\n[1, {"x": 2}]\n</parameter>\n</function>\n</tool_call>',
    want: { calls: [call("add", '{"a": 12, "s": "007", "ok": true, "list": [1, {"x": 2}]}')] },
  },
  {
    text: "<tool_call>\n<function=now>\n</function>\n</tool_call>",
    want: { calls: [call("now", "{}")] },
  },
  {
    text: '<|python_tag|>{"name": "add", "parameters": {"a": 1}}; {"name": "now", "parameters": {}}',
    options: { calls: "bare" },
    want: { calls: [call("add", '{"a": 1}'), call("now", "{}")], content: "" },
  },
  {
    text: '{"name": "add", "parameters": {"a": 1}}',
    options: { calls: "bare" },
    want: { calls: [call("add", '{"a": 1}')] },
  },
  {
    text: '{"just": "JSON"} text',
    options: { calls: "bare" },
    want: { content: '{"just": "JSON"} text', calls: [] },
  },
  {
    text: 'ok [TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}, {"name": "now", "arguments": {}}] end',
    options: { calls: "listed" },
    want: { content: "okend", calls: [call("add", '{"a": 1}'), call("now", "{}")] },
  },
  {
    text: '[TOOL_CALLS]add[ARGS]{"a": {"b": "}"}}[TOOL_CALLS]now[ARGS]{}',
    options: { calls: "listed" },
    want: { content: "", calls: [call("add", '{"a": {"b": "}"}}'), call("now", "{}")] },
  },
];

describe("dividing an answer into sections", () => {
  it.each(samples)("reads $text", ({ text, want, options }) => {
    expect(read([text], options)).toMatchObject(want);
  });

  it("gives the same however the text comes", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...samples),
        fc.array(fc.nat(200), { maxLength: 12 }),
        ({ text, options }, cuts) => {
          const places = [...new Set(cuts.map((cut) => cut % text.length))].toSorted(
            (a, b) => a - b,
          );
          const pieces = [...places, text.length].map((end, index) =>
            text.slice(places[index - 1] ?? 0, end),
          );
          expect(read(pieces, options)).toEqual(read([text], options));
        },
      ),
      { numRuns: 1000 },
    );
  });

  it("passes arguments on byte by byte, whatever they hold", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom(undefined, 1, 2),
        fc.integer({ min: 1, max: 7 }),
        (value, indent, size) => {
          const text = JSON.stringify(value, null, indent);
          const whole = `<tool_call>{"name": "add", "arguments": ${text}}</tool_call>`;
          const pieces = whole.match(new RegExp(`.{1,${size}}`, "gsu")) ?? [];
          expect(read(pieces).calls).toEqual([call("add", text)]);
        },
      ),
    );
  });
});

describe("cutting at stop texts", () => {
  const cut = (pieces: readonly string[], stops: readonly string[], keeps = false) => {
    const cutter = new StopCutter(stops, keeps);
    const shown: string[] = [];
    for (const piece of pieces) {
      const { text, stop } = cutter.push(piece, true);
      shown.push(text);
      if (stop !== null) return { text: shown.join(""), stop, shown };
    }
    shown.push(cutter.flush());
    return { text: shown.join(""), stop: null, shown };
  };

  it("ends before the stop, wherever it lies", () => {
    expect(cut(["ab", "cST", "OPd"], ["STOP"])).toMatchObject({ text: "abc", stop: "STOP" });
    expect(cut(["xSTOPy"], ["STOP"], true)).toMatchObject({ text: "xSTOP" });
    expect(cut(["abab", "ac"], ["abac"])).toMatchObject({ text: "ab", stop: "abac" });
  });

  it("takes the stop that begins first", () => {
    expect(cut(["1 two one"], ["one", "two"])).toMatchObject({ text: "1 ", stop: "two" });
  });

  it("shows no part of a stop, and delays nothing longer than its length", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c") })),
        fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1 }),
        (pieces, stop) => {
          const whole = pieces.join("");
          const at = whole.indexOf(stop);
          const { text } = cut(pieces, [stop]);
          expect(text).toBe(at < 0 ? whole : whole.slice(0, at));
          const cutter = new StopCutter([stop], false);
          let [given, shown] = [0, 0];
          for (const piece of pieces) {
            given += piece.length;
            const step = cutter.push(piece, true);
            shown += step.text.length;
            if (step.stop !== null) break;
            expect(given - shown).toBeLessThan(stop.length);
          }
        },
      ),
    );
  });
});
