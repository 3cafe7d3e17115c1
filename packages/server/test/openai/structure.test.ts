import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { joined, OpenAiServer, type Loose } from "../support/openai-server.js";
import { randomSchema } from "../support/random-schema.js";

let server: OpenAiServer;
beforeAll(async () => {
  server = await OpenAiServer.open();
});
afterAll(() => server.close());

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
const ajv = new Ajv2020({ strict: false });
addFormats.default(ajv);

/** The embedded model knows no JSON: whatever validates was enforced. */
const free = {
  temperature: 1,
  max_tokens: 300,
  chat_template_kwargs: { enable_thinking: false },
};
const withSchema = (schema: unknown) => ({
  ...free,
  response_format: { type: "json_schema", json_schema: { name: "s", strict: true, schema } },
});

/** Every choice parses and validates, or was cut off. */
function check(schema: unknown, choices: Loose[]): number {
  const validate = ajv.compile(schema as object);
  let whole = 0;
  for (const { message, finish_reason } of choices) {
    if (finish_reason === "length") continue;
    expect(finish_reason).toBe("stop");
    const value = JSON.parse(message.content) as unknown;
    expect(validate(value), `${message.content} ${JSON.stringify(validate.errors)}`).toBe(true);
    whole += 1;
  }
  return whole;
}

const tree = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 6 },
    kind: { enum: ["leaf", "branch"] },
    size: { type: ["integer", "null"], minimum: 0, maximum: 9 },
    tags: { type: "array", items: { type: "boolean" }, maxItems: 2 },
    children: { type: "array", items: { $ref: "#" }, maxItems: 1 },
  },
  required: ["name", "kind", "size", "tags", "children"],
  additionalProperties: false,
};

const samples = isFull ? 100 : 25;

/** As many answers as are looked at, 25 at a time. */
async function ask(body: Record<string, unknown>): Promise<Loose[]> {
  const choices: Loose[] = [];
  for (let seed = 0; choices.length < samples; seed++) {
    const { status, json } = await server.chat({ ...body, n: 25, seed });
    expect(status, JSON.stringify(json)).toBe(200);
    choices.push(...json.choices);
  }
  return choices;
}

describe("answers of a demanded form", () => {
  it("are objects", async () => {
    // Stories without quotation marks are all that the model knows: many of its texts are cut off.
    const choices = await ask({
      ...free,
      max_tokens: 150,
      response_format: { type: "json_object" },
    });
    const whole = choices.filter((one: Loose) => one.finish_reason !== "length");
    for (const { message, finish_reason } of whole) {
      expect(finish_reason).toBe("stop");
      const value = JSON.parse(message.content) as unknown;
      expect(typeof value === "object" && value !== null && !Array.isArray(value)).toBe(true);
    }
    expect(whole.length).toBeGreaterThan(samples / 10);
  }, 120_000);

  it("validate, streamed and not", async () => {
    const choices = await ask(withSchema(tree));
    expect(check(tree, choices)).toBeGreaterThan(samples * 0.9);
    const { events } = await server.stream({ ...withSchema(tree), n: 25, seed: 0 });
    for (const [index, { message }] of choices.slice(0, 25).entries()) {
      expect(joined(events, index).content).toBe(message.content);
    }
  }, 120_000);

  it("validate for random schemas", async () => {
    let whole = 0;
    await fc.assert(
      fc.asyncProperty(randomSchema(), async (schema) => {
        const { status, json } = await server.chat({
          ...withSchema(schema),
          n: 3,
          max_tokens: 200,
        });
        expect(status, JSON.stringify(json)).toBe(200);
        whole += check(schema, json.choices);
      }),
      { numRuns: isFull ? 1000 : 15, endOnFailure: true },
    );
    expect(whole).toBeGreaterThan(isFull ? 1000 : 10);
  }, 3_600_000);

  it("are refused by the keyword where they cannot be enforced", async () => {
    const cases: [unknown, string][] = [
      [{ type: "array", uniqueItems: true }, "uniqueItems"],
      [{ type: "object", properties: { a: { not: {} } } }, "not"],
      [{ type: "string", pattern: "(" }, "pattern"],
      [{ $ref: "#/$defs/x" }, "$ref"],
      [{ enum: Array.from({ length: 50_000 }, (_, n) => n) }, "too large"],
    ];
    for (const [schema, keyword] of cases) {
      const { status, json } = await server.chat(withSchema(schema));
      expect([status, json.error.param]).toEqual([400, "response_format"]);
      expect(json.error.message).toContain(keyword);
    }
    for (const format of [{ type: "json_schema" }, { type: "yaml" }, {}, "json"]) {
      const { status, json } = await server.chat({ response_format: format });
      expect(status).toBe(400);
      expect(json.error.param).toMatch(/^response_format/);
    }
  });

  it("come behind free thoughts, or at once where thinking is off", async () => {
    const number = { type: "integer", minimum: 10, maximum: 99 };
    const opened = { opens_thinking: true };
    const { json } = await server.chat({
      ...withSchema(number),
      chat_template_kwargs: opened,
      n: 6,
      max_tokens: 600,
      // The model would not end its thoughts: the way to their end is made likely.
      logit_bias: Object.fromEntries(
        Array.from("</think>").map((char) => [server.tokenizer.tokenToId(char), 9]),
      ),
    });
    for (const { message, finish_reason } of json.choices) {
      if (finish_reason === "length") expect(message.content).toBe("");
      else expect(Number(message.content)).toBeGreaterThanOrEqual(10);
    }
    const { json: off } = await server.chat({ ...withSchema(number), n: 3 });
    for (const { message } of off.choices) expect(message.content).toMatch(/^\d\d$/);
  });

  it("change nothing for requests beside them", async () => {
    const plain = { temperature: 1, seed: 9, max_tokens: 40 };
    const alone = await server.chat(plain);
    const [beside] = await Promise.all([server.chat(plain), server.chat(withSchema(tree))]);
    expect(beside.json.choices).toEqual(alone.json.choices);
  });

  it("hold for completions too", async () => {
    const schema = {
      type: "array",
      items: { type: "integer", minimum: 0, maximum: 9 },
      maxItems: 3,
    };
    const { response_format } = withSchema(schema);
    const { json } = await server.complete({ response_format, max_tokens: 50, temperature: 1 });
    expect(ajv.compile(schema)(JSON.parse(json.choices[0].text))).toBe(true);
  });
});
