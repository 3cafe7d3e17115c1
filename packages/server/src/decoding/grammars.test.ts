import { afterEach, beforeEach, expect, it } from "vitest";
import { unfoldingSchema } from "../../test/support/worst-bodies.js";
import { answerGrammar, type AnswerShape } from "../structure/answer-grammar.js";
import { Grammars } from "./grammars.js";

let grammars: Grammars;
beforeEach(() => {
  grammars = new Grammars();
});
afterEach(() => grammars.close());

const shape = (schema: unknown): AnswerShape => ({ json: { schema }, calls: null, thinking: null });

it("makes the grammar of a shape, and knows it when it is asked again", async () => {
  const wanted = shape({ type: "object", properties: { age: { type: "integer" } } });
  const made = await grammars.make("ann", wanted);
  expect(made).toEqual({ grammar: JSON.stringify(answerGrammar(wanted)) });
  expect(await grammars.make("bob", structuredClone(wanted))).toBe(made);
});

it("says why there is none", async () => {
  const made = await grammars.make("ann", shape({ not: {} }));
  expect(made).toEqual({ problem: "not: is not supported" });
});

it("gives up a schema that unfolds without end, and goes on with others", async () => {
  const impatient = new Grammars(50);
  try {
    const made = await impatient.make("ann", shape(unfoldingSchema(40)));
    expect(made).toEqual({ problem: "the schema is too much to follow; make it simpler" });
  } finally {
    await impatient.close();
  }
  expect(await grammars.make("ann", shape(unfoldingSchema(4)))).toHaveProperty("grammar");
});
