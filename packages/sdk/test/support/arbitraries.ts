import fc from "fast-check";
import type { Node, ObjectNode } from "../../src/schema/node.js";
import { Timestamp } from "../../src/schema/timestamp.js";
import { narrowIntegers } from "../../src/schema/typed-lists.js";
import { TensorData } from "../../src/types/tensor-data.js";

/** Values of a schema node: another interpreter of the one schema, so every type has a generator. */
export function valuesOf(node: Node, isMeasured = false): fc.Arbitrary<unknown> {
  const inside = (item: Node): fc.Arbitrary<unknown> => valuesOf(item, isMeasured);
  const double = isMeasured ? measuredDouble : finiteDouble;
  switch (node.kind) {
    case "string":
      return text();
    case "boolean":
      return fc.boolean();
    case "number":
      return double();
    case "integer":
      return node.allowBig ? fc.oneof(safeInteger(), bigInteger()) : safeInteger();
    case "literal":
      return fc.constant(node.value);
    case "enum":
      return node.isOpen
        ? fc.oneof(fc.constantFrom(...node.values), text())
        : fc.constantFrom(...node.values);
    case "timestamp":
      return timestamp();
    case "bytes":
      return fc.uint8Array({ maxLength: 40 });
    case "json":
      return jsonValue();
    case "tokens":
      return fc.int32Array({ maxLength: 12 });
    case "floats":
      return fc.array(double(), { maxLength: 12 }).map((list) => Float64Array.from(list));
    case "integers":
      return integers();
    case "nullable":
      return fc.option(inside(node.item));
    case "array":
      return fc.array(inside(node.item), { maxLength: 4 });
    case "tuple":
      return fc.tuple(...node.items.map(inside));
    case "record":
      return fc.dictionary(text(), inside(node.item), { maxKeys: 4 });
    case "measured":
      return valuesOf(node.item, true);
    case "object":
      return objectValues(node);
    case "union":
      return fc.oneof(
        ...Object.entries(node.options).map(([key, option]) =>
          inside(option).filter((value) => node.choose(value) === key),
        ),
      );
    case "mapped":
      return node.name === "TensorData"
        ? tensors(isMeasured)
        : inside(node.inner).map((inner) => node.wrap(inner as never));
  }
}

/** Tensors of every layout: scalar, flat, shaped, sparse, narrow and wide integers. */
export function tensors(isMeasured = false): fc.Arbitrary<TensorData> {
  const shape = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 3 });
  return shape.chain((sizes) => {
    const length = sizes.reduce((product, size) => product * size, 1);
    const exact = { minLength: length, maxLength: length };
    const data = fc.oneof(
      fc
        .float32Array({ ...exact, noNaN: !isMeasured, noDefaultInfinity: !isMeasured })
        .map((values) => values.map((value) => value + 0)),
      fc.array(fc.constantFrom(0, 0, 0, 1.5), exact).map((list) => Float32Array.from(list)),
      fc.int32Array(exact),
      fc.bigInt64Array(exact),
    );
    return fc.tuple(data, fc.constantFrom("shaped", "flat", "compact")).map(([values, layout]) => {
      const tensor = new TensorData({ data: values, shape: layout === "flat" ? null : sizes });
      return layout === "compact" ? tensor.toCompact() : tensor;
    });
  });
}

function objectValues(node: ObjectNode): fc.Arbitrary<unknown> {
  const fields = Object.fromEntries(
    [...node.fields.values()].map((field) => [
      field.name,
      field.protobufOnly
        ? fc.constant(field.default)
        : field.presence === "optional" && !field.isPromised
          ? fc.option(valuesOf(field.node))
          : valuesOf(field.node),
    ]),
  );
  const known = fc.record(fields).filter((value) =>
    node.fieldList.every(({ name, requiredUnless }) => {
      if (requiredUnless === undefined) return true;
      return value[name] !== null || value[node.byWireName.get(requiredUnless)!.name] !== null;
    }),
  );
  if (node.strict) return known;
  const unknownFields = fc
    .dictionary(text(), jsonValue(), { minKeys: 1, maxKeys: 2 })
    .filter((entries) => Object.keys(entries).every((key) => !node.byWireName.has(key)));
  return fc
    .tuple(known, fc.option(unknownFields, { freq: 3 }))
    .map(([value, extra]) => (extra === null ? value : { ...value, unknownFields: extra }));
}

function text(): fc.Arbitrary<string> {
  return fc.oneof(
    fc.string({ unit: "binary", maxLength: 10 }),
    fc.constantFrom("", "__proto__", "12345678901234567890", 'quote " back \\', "\u2028", "😀"),
  );
}

// Minus zero is the one finite double that JSON text does not keep.
function finiteDouble(): fc.Arbitrary<number> {
  return fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
}

function measuredDouble(): fc.Arbitrary<number> {
  return fc.oneof(finiteDouble(), fc.constantFrom(Infinity, -Infinity, Number.NaN));
}

function safeInteger(): fc.Arbitrary<number> {
  return fc.oneof(fc.maxSafeInteger(), fc.integer({ min: -3, max: 3 }));
}

function bigInteger(): fc.Arbitrary<bigint> {
  return fc
    .bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n })
    .filter((value) => !Number.isSafeInteger(Number(value)));
}

function integers(): fc.Arbitrary<Int32Array | BigInt64Array> {
  return fc.oneof(
    fc.int32Array({ maxLength: 8 }),
    fc.bigInt64Array({ maxLength: 8 }).map(narrowIntegers),
  );
}

// In free-form JSON a double beyond 2^53 comes back as the bigint its text is; keep to what is stable.
function jsonValue(): fc.Arbitrary<unknown> {
  return fc
    .jsonValue({ maxDepth: 2 })
    .map((value) => JSON.stringify(value))
    .filter((json) => !/\d{16}/.test(json))
    .map((json) => JSON.parse(json) as unknown);
}

function timestamp(): fc.Arbitrary<Timestamp> {
  const min = new Date("0100-01-01T00:00:00Z");
  const max = new Date("9999-01-01T00:00:00Z");
  return fc
    .tuple(
      fc.date({ min, max, noInvalidDate: true }),
      fc.constantFrom("", ".5", ".000001", ".123456", ".999999999"),
      fc.constantFrom("Z", "+05:30", "-08:00", "+0200", ""),
    )
    .map(
      ([date, fraction, zone]) =>
        new Timestamp(`${date.toISOString().slice(0, 19)}${fraction}${zone}`),
    );
}
