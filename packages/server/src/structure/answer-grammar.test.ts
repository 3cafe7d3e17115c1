import { expect, it } from "vitest";
import { answerGrammar, type AnswerShape, type CallFormat } from "./answer-grammar.js";
import { exampleText } from "./example-text.js";

const functions = [{ name: "now", parameters: null }];

function examples(shape: Partial<AnswerShape>): string[] {
  const grammar = answerGrammar({ json: null, calls: null, thinking: null, ...shape });
  return Array.from({ length: 200 }, () => exampleText(grammar, Math.random));
}

it.each<[CallFormat, string, string, string]>([
  [
    "tagged",
    '<tool_call>\n{"name": "now", "arguments": {}}',
    "\n</tool_call>\n<tool_call>\n",
    "\n</tool_call>",
  ],
  ["listed", '[TOOL_CALLS][{"name": "now", "arguments": {}}', ", ", "]"],
  ["bare", '{"name": "now", "parameters": {}}', "; ", ""],
])(
  "writes calls that are %s from their beginning to their end",
  (format, first, between, close) => {
    const one = examples({ calls: { format, functions, isOne: true } });
    expect(new Set(one)).toEqual(new Set([first + close]));
    const texts = new Set(examples({ calls: { format, functions, isOne: false } }));
    const call = first.slice(first.indexOf("{"));
    const several = [0, 1, 2].map((more) => first + (between + call).repeat(more) + close);
    for (const text of several) expect([...texts]).toContain(text);
    for (const text of texts) expect(text.replaceAll(between + call, "")).toBe(first + close);
  },
);

it("leaves thoughts free, which come first where the prompt has opened them", () => {
  const json = { schema: { const: 1 } };
  const marks = { open: "<think>", close: "</think>" };
  for (const text of examples({ json, thinking: { ...marks, isOpen: true } })) {
    expect(text).toMatch(/<\/think>\n{0,2}1$/);
    expect(text.startsWith("<think>")).toBe(false);
  }
  const texts = examples({ json, thinking: { ...marks, isOpen: false } });
  for (const text of texts) expect(text).toMatch(/^(<think>[^]*<\/think>\n{0,2})?1$/);
  expect(texts).toContain("1");
});
