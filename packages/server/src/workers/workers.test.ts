import { afterEach, beforeEach, expect, it } from "vitest";
import { unfoldingSchema } from "../../test/support/worst-bodies.js";
import { Scheduler } from "../scheduler.js";
import { answerGrammar, type AnswerShape } from "../structure/answer-grammar.js";
import { checkSize, readJson } from "./decode-body.js";
import { maxWorkers, Workers } from "./workers.js";

const newWorkers = (maxMs?: number): Workers => {
  const scheduler = new Scheduler({ workers: { capacity: maxWorkers } });
  return new Workers(scheduler, maxMs);
};

let workers: Workers;
beforeEach(() => {
  workers = newWorkers();
});
afterEach(() => workers.close());

const shape = (schema: unknown): AnswerShape => ({ json: { schema }, calls: null, thinking: null });

it("makes the grammar of a shape, and knows it when it is asked again", async () => {
  const wanted = shape({ type: "object", properties: { age: { type: "integer" } } });
  const made = await workers.grammar("ann", wanted);
  expect(made).toEqual({ grammar: JSON.stringify(answerGrammar(wanted)) });
  expect(await workers.grammar("bob", structuredClone(wanted))).toBe(made);
});

it("says why there is no grammar", async () => {
  const made = await workers.grammar("ann", shape({ not: {} }));
  expect(made).toEqual({ problem: "not: is not supported" });
});

it("gives up a schema that unfolds without end, and goes on with others", async () => {
  const impatient = newWorkers(50);
  try {
    const made = await impatient.grammar("ann", shape(unfoldingSchema(40)));
    expect(made).toEqual({ problem: "the schema is too complex; make it simpler" });
  } finally {
    await impatient.close();
  }
  expect(await workers.grammar("ann", shape(unfoldingSchema(4)))).toHaveProperty("grammar");
});

const read = (text: string, form: "whole" | "lines"): string[] => readJson(Buffer.from(text), form);

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
  const objects = `[${"{},".repeat(30_000)}{}]`;
  expect(read(`${objects}\n${objects}`, "lines")).toHaveLength(2);
  expect(() => read(objects, "whole")).toThrow("the JSON is too large");
});

it("refuses what is not UTF-8", () => {
  expect(() => readJson(Uint8Array.of(0x22, 0xff, 0x22), "whole")).toThrow("not UTF-8");
});

it("reads lines of an owner in the order in which they came, in a worker or not", async () => {
  const order: string[] = [];
  const large = Buffer.from(`{"a":"${"x".repeat(5e6)}"}`);
  await Promise.all([
    workers.json("ann", [large], "lines").then(() => order.push("large")),
    workers.json("ann", [Buffer.from("{}")], "lines").then(() => order.push("small")),
    workers.json("bob", [Buffer.from("{}")], "lines").then(() => order.push("other")),
  ]);
  expect(order).toEqual(["other", "large", "small"]);
});

it("bounds objects, lists, fields and texts, and numbers by themselves", () => {
  const refused = "the JSON is too large";
  const many = (length: number, one: unknown) => Array.from({ length }, () => one);
  expect(() => checkSize(many(400_000, 1))).not.toThrow();
  expect(() => checkSize(many(400_001, 1))).toThrow(refused);
  expect(() => checkSize(many(19_999, "a"))).not.toThrow();
  expect(() => checkSize(many(20_000, "a"))).toThrow(refused);
  expect(() => checkSize(many(10_000, { a: 1 }))).toThrow(refused);
  expect(() => checkSize(many(20_000, []))).toThrow(refused);
  expect(() => checkSize(Object.fromEntries(many(20_000, 1).map((_, n) => [`f${n}`, 1])))).toThrow(
    refused,
  );
  expect(() => checkSize(new Float64Array(1e6))).not.toThrow();
  const nested = (depth: number) =>
    JSON.parse(`${"[".repeat(depth)}${"]".repeat(depth)}`) as unknown;
  expect(() => checkSize(nested(1000))).not.toThrow();
  expect(() => checkSize(nested(1001))).toThrow("inside each other");
});
