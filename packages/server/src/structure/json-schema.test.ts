import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { randomSchema } from "../../test/support/random-schema.js";
import { exampleText } from "./example-text.js";
import { schemaGrammar } from "./json-schema.js";

const ajv = new Ajv2020({ strict: false, validateFormats: true });
addFormats.default(ajv);

/** Texts of a schema's grammar, each of which must parse and validate. */
function examplesOf(schema: unknown, count = 40): unknown[] {
  const grammar = schemaGrammar(schema);
  const validate = ajv.compile(schema as object);
  return Array.from({ length: count }, () => {
    const text = exampleText(grammar, Math.random);
    const value = JSON.parse(text) as unknown;
    expect(validate(value), `${text} ${JSON.stringify(validate.errors)}`).toBe(true);
    return value;
  });
}

describe("texts of a schema", () => {
  it("validate, whatever the schema", () => {
    fc.assert(
      fc.property(randomSchema(), (schema) => {
        examplesOf(schema, 5);
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    { type: "integer", minimum: 7, maximum: 7 },
    { type: "integer", minimum: -12, maximum: 1005 },
    { type: "integer", exclusiveMinimum: 0, exclusiveMaximum: 11, multipleOf: 5 },
    { type: "integer", minimum: -9007199254740991, maximum: 9007199254740991 },
    { type: "integer", minimum: 1.5, maximum: 2.5 },
    { type: "number", minimum: 0, maximum: 1 },
    { type: "number", minimum: 0.25, maximum: 0.26 },
    { type: "number", exclusiveMinimum: -1.5, exclusiveMaximum: 1e-3 },
    { type: "number", minimum: 99.9 },
    { type: "number", maximum: -0.5 },
    { type: "number", exclusiveMaximum: 10, minimum: 9.99 },
    { type: "number", exclusiveMinimum: 0 },
  ])("keep within the bounds of %o", (schema) => {
    examplesOf(schema, 300);
  });

  it("reach both ends of a range", () => {
    const values = new Set(examplesOf({ type: "integer", minimum: 8, maximum: 13 }, 400));
    expect(values).toEqual(new Set([8, 9, 10, 11, 12, 13]));
  });

  it.each([
    "^[A-Z]{2,3}-\\d+$",
    "a|^b.c$",
    '^(?:x|y(z)?)*\\.\\u00e9[^\\s"\\\\]$',
    "^\\w+@\\W\\D\\S?$",
    '"quoted"',
    "^$",
  ])("match the pattern %s", (pattern) => {
    examplesOf({ type: "string", pattern });
  });

  it.each([
    "date",
    "time",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
    "uri",
  ])("have the format %s", (format) => {
    examplesOf({ type: "string", format }, 100);
  });

  it.each([
    {
      type: "object",
      properties: { a: { type: "integer" }, b: true },
      additionalProperties: { type: "string" },
    },
    {
      type: "object",
      properties: { ab: { const: 1 }, abc: { const: 2 } },
      additionalProperties: true,
    },
    { type: "object", required: ["x"], additionalProperties: { type: "null" } },
    {
      type: "object",
      propertyNames: { pattern: "^k\\d$" },
      additionalProperties: { type: "boolean" },
    },
    {
      allOf: [
        { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
        { properties: { b: { type: "null" } }, required: ["b"] },
      ],
    },
    {
      type: "array",
      prefixItems: [{ type: "string" }, { type: "number" }],
      items: false,
      minItems: 1,
    },
    {
      type: "array",
      prefixItems: [{ type: "string" }],
      items: { type: "null" },
      minItems: 2,
      maxItems: 3,
    },
    {
      oneOf: [
        { type: "object", properties: { k: { const: "a" } }, required: ["k"] },
        {
          type: "object",
          properties: { k: { const: "b" }, n: { type: "number" } },
          required: ["k", "n"],
        },
      ],
    },
    { type: ["string", "null"], minLength: 2, maxLength: 3 },
    { enum: ["a", 1, null, { b: [1, "\n"] }] },
    {},
    {
      type: "object",
      properties: { anyOf: { type: "string" } },
      anyOf: [{ required: ["anyOf"] }, { maxLength: 3 }],
    },
  ])("fulfil %j", (schema) => {
    examplesOf(schema, 60);
  });

  it("may contain themselves", () => {
    const tree = {
      $ref: "#/$defs/node",
      $defs: {
        node: {
          type: "object",
          properties: {
            value: { type: "integer" },
            children: { type: "array", items: { $ref: "#/$defs/node" } },
          },
          required: ["value", "children"],
          additionalProperties: false,
        },
      },
    };
    examplesOf(tree);
  });

  it("follow what zod writes", () => {
    const schema = z.object({
      email: z.email(),
      id: z.uuid(),
      at: z.iso.datetime(),
      site: z.url(),
      age: z.number().int().min(0).max(150),
      score: z.number().min(0).max(1),
      tags: z.array(z.enum(["a", "b"])).max(3),
      maybe: z.string().nullable(),
      either: z.union([z.string(), z.number()]),
      pair: z.tuple([z.string(), z.number()]),
      map: z.record(z.string(), z.boolean()),
      kind: z.discriminatedUnion("k", [
        z.object({ k: z.literal("x"), a: z.string() }),
        z.object({ k: z.literal("y"), b: z.number().optional() }),
      ]),
    });
    for (const target of ["draft-2020-12", "draft-7"] as const) {
      const { $schema: _, ...written } = z.toJSONSchema(schema, { target });
      const grammar = schemaGrammar(written);
      for (let i = 0; i < 40; i++) {
        schema.parse(JSON.parse(exampleText(grammar, Math.random)));
      }
    }
  });
});

describe("what cannot be enforced", () => {
  it.each([
    [{ type: "array", uniqueItems: true }, "uniqueItems"],
    [{ properties: { a: { not: { type: "null" } } } }, "properties.a.not"],
    [{ type: "string", pattern: "(" }, "pattern"],
    [{ type: "string", pattern: "(?=a)b" }, "pattern"],
    [{ type: "string", pattern: "(a)\\1" }, "pattern"],
    [{ type: "string", pattern: "^a$", minLength: 4 }, "pattern"],
    [{ type: "string", format: "uuid", pattern: "^b" }, "pattern"],
    [{ type: "string", format: "rainbow" }, "format"],
    [{ $ref: "#/$defs/missing" }, "$ref"],
    [{ $ref: "https://example.org/schema" }, "$ref"],
    [{ $ref: "#/%zz" }, "$ref"],
    [{ type: "number", multipleOf: 0.1 }, "multipleOf"],
    [{ type: "integer", multipleOf: 3 }, "multipleOf"],
    [{ patternProperties: { a: {} } }, "patternProperties"],
    [{ type: "object", minProperties: 1 }, "minProperties"],
    [{ oneOf: [{ type: "number" }, { type: "integer" }] }, "oneOf"],
    [{ if: {} }, "if"],
    [{ type: "strnig" }, "type"],
    [{ enum: ["a"], type: "number" }, "enum"],
    [{ type: "integer", minimum: 3, maximum: 2 }, "bounds"],
    [{ type: "array", minItems: 3, maxItems: 2 }, "maxItems"],
    [{ type: "object", properties: { a: { $ref: "#" } }, required: ["a"] }, "without an end"],
    [{ $ref: "#" }, "without an end"],
    [false, "nothing can fulfil it"],
    ["text", "must be an object"],
  ])("is refused by name: %j", (schema, name) => {
    expect(() => schemaGrammar(schema)).toThrow(name);
  });
});
