/**
 * A schema is plain data: a tree of nodes. Decoding, encoding, the parity page and the generators of
 * the property tests are interpreters of that tree, so no wire type has code of its own.
 */
export type Node =
  | { readonly kind: "string" }
  | { readonly kind: "boolean" }
  | { readonly kind: "number" }
  | { readonly kind: "integer"; readonly allowBig: boolean }
  | { readonly kind: "literal"; readonly value: string }
  | EnumNode
  | { readonly kind: "timestamp" }
  | { readonly kind: "bytes" }
  | { readonly kind: "json" }
  | { readonly kind: "tokens" }
  | { readonly kind: "floats" }
  | { readonly kind: "integers" }
  | { readonly kind: "nullable"; readonly item: Node }
  | { readonly kind: "array"; readonly item: Node }
  | { readonly kind: "tuple"; readonly items: readonly Node[] }
  | { readonly kind: "record"; readonly item: Node }
  /** Numbers in it may be infinite or not a number; JSON carries those as text. */
  | { readonly kind: "measured"; readonly item: Node }
  | ObjectNode
  | UnionNode
  | MappedNode;

/** A set of strings; an open one keeps other values, `fallback` absorbs them, else they are refused. */
export interface EnumNode {
  readonly kind: "enum";
  readonly values: readonly string[];
  readonly isOpen?: boolean;
  readonly fallback?: string;
  readonly ignoreCase?: boolean;
}

/** An object with named fields; strict ones refuse unknown fields, the others keep them. */
export interface ObjectNode {
  readonly kind: "object";
  readonly name: string;
  readonly strict: boolean;
  readonly since: string | undefined;
  /** Fields by public name. */
  readonly fields: ReadonlyMap<string, FieldNode>;
  /** The same fields in order; walking a list allocates nothing. */
  readonly fieldList: readonly FieldNode[];
  /** The same fields by wire name. */
  readonly byWireName: ReadonlyMap<string, FieldNode>;
  /** Wire names that old clients send and that are read over, or read as another field. */
  readonly ignored: ReadonlySet<string>;
}

/** How a field behaves when it is missing. */
export type Presence = "required" | "optional" | "default";

/** One field of an object. */
export interface FieldNode {
  readonly name: string;
  readonly wireName: string;
  readonly node: Node;
  readonly presence: Presence;
  /** The value of a missing field when presence is `default`. */
  readonly default: unknown;
  /** Travels in protobuf only; in JSON it is absent and must have its default. */
  readonly protobufOnly: boolean;
  /** First version of the Python SDK that has the field; undefined means from the start. */
  readonly since: string | undefined;
  /** Optional, but a message without it breaks the contract; clients read over that. */
  readonly isPromised: boolean;
  /** What old clients call it. */
  readonly oldWireName: string | undefined;
  /** Optional where the field of this wire name is given, required elsewhere. */
  readonly requiredUnless: string | undefined;
}

/** One of several nodes; `choose` and `chooseWire` name the option that a value or its JSON form belongs to. */
export interface UnionNode {
  readonly kind: "union";
  readonly name: string;
  readonly options: Readonly<Record<string, Node>>;
  readonly choose: (value: unknown) => string | undefined;
  readonly chooseWire: (json: unknown) => string | undefined;
  /** The public name of the field that distinguishes the options, when there is one. */
  readonly tag: string | undefined;
}

/** A value with behaviour (a class) on top of a plain inner value. */
export interface MappedNode {
  readonly kind: "mapped";
  readonly name: string;
  readonly inner: Node;
  readonly wrap: (inner: never) => unknown;
  readonly unwrap: (value: never) => unknown;
}

/** The values of an enumeration. */
export function valuesOf({ node }: { readonly node: Node }): ReadonlySet<unknown> {
  return new Set(node.kind === "enum" ? node.values : []);
}
