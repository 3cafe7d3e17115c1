import fc from "fast-check";

const key = fc.constantFrom("a", "b", "name", "a b", "ü", '"', "\\n");

const leaf: fc.Arbitrary<object> = fc.oneof(
  fc.constant({ type: "string" }),
  fc.record({
    type: fc.constant("string"),
    minLength: fc.nat(3),
    maxLength: fc.integer({ min: 3, max: 6 }),
  }),
  fc.record({
    type: fc.constant("string"),
    pattern: fc.constantFrom("^[a-c]+$", "x|y", "^\\d{2}-[^a-z]?$"),
  }),
  fc.record({
    type: fc.constant("string"),
    format: fc.constantFrom("date", "uuid", "ipv4", "email"),
  }),
  fc.constant({ type: "boolean" }),
  fc.constant({ type: "null" }),
  fc.constant({ type: "integer" }),
  fc.constant({ type: "number" }),
  fc
    .tuple(fc.integer({ min: -500, max: 500 }), fc.nat(800))
    .map(([minimum, width]) => ({ type: "integer", minimum, maximum: minimum + width })),
  fc
    .tuple(fc.integer({ min: -500, max: 500 }), fc.integer({ min: 1, max: 800 }))
    .map(([low, width]) => ({
      type: "number",
      minimum: low / 8,
      exclusiveMaximum: (low + width) / 8,
    })),
  fc.record({
    enum: fc.uniqueArray(fc.oneof(fc.string(), fc.integer(), fc.constant(null)), {
      minLength: 1,
      maxLength: 4,
    }),
  }),
  fc.record({ const: fc.jsonValue({ maxDepth: 1 }) }),
  fc.constant({ type: ["string", "null"] }),
);

/** Schemas of the supported kind, nested a few levels deep. */
export function randomSchema(): fc.Arbitrary<object> {
  const { schema } = fc.letrec<{ schema: object }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      leaf,
      fc
        .tuple(
          fc.dictionary(key, tie("schema"), { maxKeys: 4 }),
          fc.constantFrom(false, true, undefined, { type: "integer" }),
          fc.integer(),
        )
        .map(([properties, additional, bits]) => ({
          type: "object",
          properties,
          required: Object.keys(properties).filter((_, index) => (bits >> index) & 1),
          ...(additional === undefined ? {} : { additionalProperties: additional }),
        })),
      fc.tuple(tie("schema"), fc.nat(2), fc.nat(2)).map(([items, minItems, more]) => ({
        type: "array",
        items,
        minItems,
        maxItems: minItems + more,
      })),
      fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).map((prefixItems) => ({
        type: "array",
        prefixItems,
        items: false,
        minItems: prefixItems.length,
      })),
      fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
      tie("schema").map((inner) => ({
        $defs: { inner },
        type: "array",
        maxItems: 2,
        items: { type: "object", properties: { x: { type: "boolean" } }, required: ["x"] },
      })),
    ),
  }));
  return schema;
}
