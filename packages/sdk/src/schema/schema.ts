import type { EnumNode, FieldNode, Node, ObjectNode, Presence } from "./node.js";
import type { Timestamp } from "./timestamp.js";
import { wireNameOf } from "./wire-name.js";

/** A node together with its TypeScript types, which exist at compile time only. */
export interface Schema<Value = unknown, Input = Value> {
  readonly node: Node;
  readonly types?: { readonly value: Value; readonly input: Input };
}

/** The type of a decoded value: every field present, `null` where the wire had nothing. */
export type ValueOf<S> = S extends Schema<infer Value, infer _Input> ? Value : never;

/** The type of a value to encode: fields with defaults and optional fields may be left out. */
export type InputOf<S> = S extends Schema<infer _Value, infer Input> ? Input : never;

/** Fields of an answer that its schema does not know, under their wire names. */
export type UnknownFields = Readonly<Record<string, unknown>>;

/** A field with its presence; a bare schema is a required field. */
export interface Field<P extends Presence, S> {
  readonly presence: P;
  readonly schema: S;
  readonly default: unknown;
  readonly facts: FieldFacts;
}

type AnySchema = Schema<unknown, unknown>;
type AnyField = AnySchema | Field<Presence, AnySchema>;
type Fields = Readonly<Record<string, AnyField>>;

type FieldValue<F> =
  F extends Field<"optional", infer S>
    ? ValueOf<S> | null
    : F extends Field<Presence, infer S>
      ? ValueOf<S>
      : ValueOf<F>;

type IsOmittable<F> = F extends Field<"optional" | "default", unknown> ? true : false;

type FieldInput<F> =
  F extends Field<"optional", infer S>
    ? InputOf<S> | null | undefined
    : F extends Field<"default", infer S>
      ? InputOf<S> | undefined
      : F extends Field<Presence, infer S>
        ? InputOf<S>
        : InputOf<F>;

/**
 * The values of an object by its fields. An interface extends it, so that an editor shows the sentence of every field
 * and the name of the type; `SchemaOf` ties the schema to that interface.
 */
export type FieldValues<F> = { [K in keyof F]: FieldValue<F[K]> };

/** What can be encoded as an object: fields with defaults and optional fields may be left out. */
export type FieldInputs<F> = {
  [K in keyof F as IsOmittable<F[K]> extends true ? never : K]: FieldInput<F[K]>;
} & {
  [K in keyof F as IsOmittable<F[K]> extends true ? K : never]?: FieldInput<F[K]>;
};

/** The schema of a request type with these fields. */
export type SchemaOf<V, F> = Schema<V, FieldInputs<F>>;

/** The values of a response by its fields. */
export type OpenValues<F> = FieldValues<F> & KeepsUnknownFields;

/** The schema of a response type with these fields. */
export type OpenSchema<V, F> = Schema<V, FieldInputs<F> & KeepsUnknownFields>;

/** An answer that keeps what its schema does not know. */
export interface KeepsUnknownFields {
  /** Fields that a newer server sent, under their wire names; sent again when the value is encoded. */
  unknownFields?: UnknownFields;
}

/** `T` with the fields `K` (all by default) left out at will: how a type with defaults is written. */
export type Omittable<T, K extends keyof T = keyof T> = Omit<T, K> & {
  [P in K]?: T[P] | undefined;
};

/** Facts about a field: for the parity page, and which wires carry it. */
export interface FieldFacts {
  readonly since?: string;
  readonly protobufOnly?: boolean;
  /** Servers promise to send it; clients can do without. */
  readonly isPromised?: boolean;
  /** What old clients call it; read, never written. */
  readonly oldWireName?: string;
  /** Wire name of the field that makes this optional one unnecessary; without either the message is refused. */
  readonly requiredUnless?: string;
}

/** Facts about an object: for the parity page, and what old clients send besides. */
export interface ObjectFacts {
  readonly since?: string;
  /** Wire names that are read over. */
  readonly ignored?: readonly string[];
}

export const string: Schema<string> = { node: { kind: "string" } };
export const boolean: Schema<boolean> = { node: { kind: "boolean" } };
/** A finite double. */
export const number: Schema<number> = { node: { kind: "number" } };
/** An integer within ±2^53. */
export const integer: Schema<number> = { node: { kind: "integer", allowBig: false } };
/** An integer of up to 64 bits: a number while it is exact, a bigint beyond ±2^53. */
export const bigInteger: Schema<number | bigint> = { node: { kind: "integer", allowBig: true } };
/** A moment, as a `Date` that keeps its original text. */
export const timestamp: Schema<Timestamp, Date | string> = { node: { kind: "timestamp" } };
/** Bytes, base64 in JSON. */
export const bytes: Schema<Uint8Array> = { node: { kind: "bytes" } };
/** Free-form JSON that belongs to the user. */
export const json: Schema = { node: { kind: "json" } };
/** Token ids. */
export const tokens: Schema<Int32Array, Int32Array | readonly number[]> = {
  node: { kind: "tokens" },
};
/** A list of doubles. */
export const floats: Schema<Float64Array, Float64Array | Float32Array | readonly number[]> = {
  node: { kind: "floats" },
};
/** A list of 64-bit integers in their smallest exact storage. */
export const integers: Schema<Int32Array | BigInt64Array> = { node: { kind: "integers" } };

export function literal<const V extends string>(value: V): Field<"default", Schema<V>> {
  return withDefault({ node: { kind: "literal", value } }, value);
}

export function enumeration<const V extends string>(
  values: readonly V[],
  options: { fallback?: NoInfer<V>; ignoreCase?: boolean } = {},
): Schema<V> {
  const node: EnumNode = { kind: "enum", values, ...options };
  return { node };
}

/** A set of strings that a newer server may add to: what is not known is kept as it is. */
export function openEnumeration<const V extends string>(
  values: readonly V[],
): Schema<V | (string & {})> {
  const node: EnumNode = { kind: "enum", values, isOpen: true };
  return { node };
}

export function nullable<V, I>(item: Schema<V, I>): Schema<V | null, I | null> {
  return { node: { kind: "nullable", item: item.node } };
}

export function array<V, I>(item: Schema<V, I>): Schema<V[], readonly I[]> {
  return { node: { kind: "array", item: item.node } };
}

export function pair<A, B>(first: Schema<A>, second: Schema<B>): Schema<[A, B]> {
  return { node: { kind: "tuple", items: [first.node, second.node] } };
}

/** A map with keys of the user, which are never renamed. */
export function record<V, I>(
  item: Schema<V, I>,
): Schema<Record<string, V>, Readonly<Record<string, I>>> {
  return { node: { kind: "record", item: item.node } };
}

/** What was measured: numbers in it may be infinite or not a number, which JSON carries as text. */
export function measured<V, I>(item: Schema<V, I>): Schema<V, I> {
  return { node: { kind: "measured", item: item.node } };
}

/** A field that may be absent or null; null is not sent. */
export function optional<V, I>(
  schema: Schema<V, I> | Field<"default", Schema<V, I>>,
  facts: FieldFacts = {},
): Field<"optional", Schema<V, I>> {
  const inner = "schema" in schema ? schema.schema : schema;
  return field("optional", inner, undefined, facts);
}

/** A field that has `value` when it is absent; always sent. */
export function withDefault<V, I>(
  schema: Schema<V, I>,
  value: NoInfer<V>,
  facts: FieldFacts = {},
): Field<"default", Schema<V, I>> {
  return field("default", schema, value, facts);
}

/** A required field with facts for the parity page. */
export function required<V, I>(
  schema: Schema<V, I>,
  facts: FieldFacts,
): Field<"required", Schema<V, I>> {
  return field("required", schema, undefined, facts);
}

/** A request type: unknown fields are refused, both ways. */
export function strictObject<F extends Fields>(
  name: string,
  fields: F,
  facts: ObjectFacts = {},
): Schema<FieldValues<F>, FieldInputs<F>> {
  return { node: objectNode(name, fields, true, facts) };
}

/** A response type: unknown fields are kept in `unknownFields` and sent again when re-encoded. */
export function openObject<F extends Fields>(
  name: string,
  fields: F,
  facts: ObjectFacts = {},
): Schema<OpenValues<F>, FieldInputs<F> & KeepsUnknownFields> {
  return { node: objectNode(name, fields, false, facts) };
}

/** Objects distinguished by the text in one field; `infer` names the variant when that field is missing. */
export function tagged<const O extends Readonly<Record<string, AnySchema>>>(
  name: string,
  tag: string,
  variants: O,
  infer: (json: Readonly<Record<string, unknown>>) => (keyof O & string) | undefined = () =>
    undefined,
): Schema<ValueOf<O[keyof O]>, InputOf<O[keyof O]>> {
  const wireTag = wireNameOf(tag);
  const read = (object: unknown, key: string): string | undefined => {
    if (typeof object !== "object" || object === null) return undefined;
    const fields = object as Readonly<Record<string, unknown>>;
    const text = fields[key];
    if (text === undefined) return infer(fields);
    return typeof text === "string" && Object.hasOwn(variants, text) ? text : undefined;
  };
  return union(name, variants, {
    tag,
    choose: (value) => read(value, tag),
    chooseWire: (wire) => read(wire, wireTag),
  });
}

/** One of several schemas, chosen by the value or by its JSON form. */
export function union<const O extends Readonly<Record<string, AnySchema>>>(
  name: string,
  options: O,
  choice: {
    choose: (value: unknown) => string | undefined;
    chooseWire: (json: unknown) => string | undefined;
    tag?: string;
  },
): Schema<ValueOf<O[keyof O]>, InputOf<O[keyof O]>> {
  const nodes = Object.fromEntries(
    Object.entries(options).map(([key, schema]) => [key, schema.node]),
  );
  return { node: { kind: "union", name, options: nodes, tag: undefined, ...choice } };
}

/** A class on top of a plain schema. */
export function mapped<V, I, Inner, InnerInput>(
  name: string,
  inner: Schema<Inner, InnerInput>,
  mapping: { wrap: (inner: Inner) => V; unwrap: (value: V | I) => InnerInput },
): Schema<V, V | I> {
  return { node: { kind: "mapped", name, inner: inner.node, ...mapping } };
}

function field<P extends Presence, S>(
  presence: P,
  schema: S,
  value: unknown,
  facts: FieldFacts,
): Field<P, S> {
  return { presence, schema, default: value, facts };
}

function objectNode(
  name: string,
  fields: Fields,
  strict: boolean,
  { since, ignored = [] }: ObjectFacts,
): ObjectNode {
  const byName = new Map<string, FieldNode>();
  const byWireName = new Map<string, FieldNode>();
  const ignoredNames = new Set(ignored);
  for (const [key, entry] of Object.entries(fields)) {
    const isField = "presence" in entry;
    const node: FieldNode = {
      name: key,
      wireName: wireNameOf(key),
      node: isField ? entry.schema.node : entry.node,
      presence: isField ? entry.presence : "required",
      default: isField ? entry.default : undefined,
      protobufOnly: isField && entry.facts.protobufOnly === true,
      since: isField ? entry.facts.since : undefined,
      isPromised: isField && entry.facts.isPromised === true,
      oldWireName: isField ? entry.facts.oldWireName : undefined,
      requiredUnless: isField ? entry.facts.requiredUnless : undefined,
    };
    byName.set(key, node);
    if (!node.protobufOnly) byWireName.set(node.wireName, node);
    if (node.oldWireName !== undefined) ignoredNames.add(node.oldWireName);
  }
  const fieldList = [...byName.values()];
  return {
    kind: "object",
    name,
    strict,
    since,
    fields: byName,
    fieldList,
    byWireName,
    ignored: ignoredNames,
  };
}
