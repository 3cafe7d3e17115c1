import type { Grammar } from "@tinker-ts/engine";
import { complement, oneOf, type CharRange } from "./characters.js";
import { exampleText } from "./example-text.js";
import { formatPatterns } from "./formats.js";
import { GrammarBuilder, type RuleId } from "./grammar-builder.js";
import { JsonText } from "./json-text.js";
import {
  areDisjoint,
  mergeSchemas,
  resolveRef,
  type Schema,
  type SchemaObject,
} from "./schemas.js";
import { decimalRange, integersBetween, wholeBounds, type NumberRange } from "./number-range.js";
import { PatternRefusal, patternRule } from "./regular-expression.js";
import { SchemaRefusal } from "./schema-refusal.js";

const typeNames = ["object", "array", "string", "number", "integer", "boolean", "null"] as const;
type TypeName = (typeof typeNames)[number];

/** What restricts an answer and is not enforced here; everything else that is unknown says nothing. */
const refusedKeywords = [
  "not",
  "if",
  "then",
  "else",
  "dependentRequired",
  "dependentSchemas",
  "dependencies",
  "patternProperties",
  "minProperties",
  "maxProperties",
  "unevaluatedProperties",
  "unevaluatedItems",
  "contains",
  "minContains",
  "maxContains",
  "$dynamicRef",
  "$recursiveRef",
] as const;

/** Which type a keyword is about, for schemas that do not say their type. */
const typeOfKeyword: Readonly<Record<string, TypeName>> = {
  properties: "object",
  required: "object",
  additionalProperties: "object",
  propertyNames: "object",
  items: "array",
  prefixItems: "array",
  minItems: "array",
  maxItems: "array",
  uniqueItems: "array",
  pattern: "string",
  minLength: "string",
  maxLength: "string",
  format: "string",
  minimum: "number",
  maximum: "number",
  exclusiveMinimum: "number",
  exclusiveMaximum: "number",
  multipleOf: "number",
};

/** Members of a range that are listed one by one where they must be multiples of something. */
const maxListed = 2000;

/** Texts of a format that a pattern beside it is tried with. */
const examples = 300;

/** Schemas inside schemas. */
const maxDepth = 200;

/**
 * The texts that fulfil a JSON schema.
 *
 * Every text of the grammar is an answer that validates; not every valid answer is a text of the grammar:
 * properties come in the order of the schema, others only where they are asked for explicitly, numbers have
 * a bounded number of digits. What cannot be enforced is refused by name.
 */
export function schemaGrammar(schema: unknown): Grammar {
  const builder = new GrammarBuilder();
  return builder.finish(addSchema(builder, schema));
}

/** Adds the rule of a schema to a grammar. */
export function addSchema(builder: GrammarBuilder, schema: unknown): RuleId {
  return new SchemaCompiler(builder, asSchema(schema, "")).compile();
}

class SchemaCompiler {
  readonly #builder: GrammarBuilder;
  readonly #json: JsonText;
  readonly #root: Schema;
  readonly #refs = new Map<string, RuleId>();
  #depth = 0;

  constructor(builder: GrammarBuilder, root: Schema) {
    this.#builder = builder;
    this.#json = new JsonText(builder);
    this.#root = root;
  }

  compile(): RuleId {
    return this.#ref("#", "");
  }

  #rule(schema: Schema, path: string): RuleId {
    if (schema === true) return this.#json.any;
    if (schema === false) return this.#builder.choice();
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new SchemaRefusal(path, "is nested too deeply");
    try {
      return this.#object(schema, path);
    } finally {
      this.#depth -= 1;
    }
  }

  #object(schema: SchemaObject, path: string): RuleId {
    for (const keyword of refusedKeywords) {
      if (keyword in schema) throw new SchemaRefusal(at(path, keyword), "is not supported");
    }
    const { $ref: ref, allOf, anyOf, oneOf: exclusive, ...rest } = schema;
    if (ref !== undefined) {
      if (typeof ref !== "string") throw new SchemaRefusal(at(path, "$ref"), "must be a string");
      if (
        !restricts(rest) &&
        allOf === undefined &&
        anyOf === undefined &&
        exclusive === undefined
      ) {
        return this.#ref(ref, path);
      }
      const { $ref: _, ...others } = schema;
      return this.#rule(mergeSchemas([others, this.#resolve(ref, path)], path), path);
    }
    if (allOf !== undefined) {
      const parts = listOf(allOf, at(path, "allOf")).map((part, index) =>
        this.#inlined(asSchema(part, `${at(path, "allOf")}[${index}]`), path),
      );
      const { allOf: _, ...others } = schema;
      return this.#rule(mergeSchemas([others, ...parts], path), path);
    }
    const keyword = anyOf === undefined ? "oneOf" : "anyOf";
    const branches = anyOf ?? exclusive;
    if (branches !== undefined) {
      if (anyOf !== undefined && exclusive !== undefined) {
        throw new SchemaRefusal(at(path, "oneOf"), "is not supported beside anyOf");
      }
      return this.#union(listOf(branches, at(path, keyword)), rest, at(path, keyword), keyword);
    }
    if ("const" in schema) return this.#values([schema["const"]], rest, at(path, "const"));
    if ("enum" in schema) {
      return this.#values(listOf(schema["enum"], at(path, "enum")), rest, at(path, "enum"));
    }
    const types = this.#types(schema, path);
    if (types.length === 0) return this.#json.any;
    return this.#builder.choice(...types.map((type) => this.#typed(type, schema, path)));
  }

  #union(
    branches: readonly unknown[],
    rest: SchemaObject,
    path: string,
    keyword: "anyOf" | "oneOf",
  ): RuleId {
    const schemas = branches.map((branch, index) => {
      const inside = asSchema(branch, `${path}[${index}]`);
      return restricts(rest) ? mergeSchemas([rest, this.#inlined(inside, path)], path) : inside;
    });
    if (keyword === "oneOf") this.#checkExclusive(schemas, path);
    return this.#builder.choice(
      ...schemas.map((schema, index) => this.#rule(schema, `${path}[${index}]`)),
    );
  }

  /** Exactly one branch must fit, so no two may fit the same value. */
  #checkExclusive(schemas: readonly Schema[], path: string): void {
    const inlined = schemas.map((schema) => this.#inlined(schema, path));
    for (const [index, schema] of inlined.entries()) {
      for (const other of inlined.slice(index + 1)) {
        if (areDisjoint(schema, other)) continue;
        throw new SchemaRefusal(
          path,
          "two of its branches may fit the same value; tell them apart by a constant, or use anyOf",
        );
      }
    }
  }

  /** What a schema says, with a reference at its top replaced by what it refers to. */
  #inlined(schema: Schema, path: string): Schema {
    let current = schema;
    for (let steps = 0; typeof current === "object" && "$ref" in current; steps++) {
      if (steps > maxDepth) throw new SchemaRefusal(path, "refers to itself");
      const { $ref: ref, ...rest } = current;
      const target = this.#resolve(String(ref), path);
      current = restricts(rest) ? mergeSchemas([rest, target], path) : target;
    }
    return current;
  }

  #resolve(ref: string, path: string): Schema {
    const found = resolveRef(this.#root, ref);
    if (found === undefined) {
      throw new SchemaRefusal(at(path, "$ref"), `${ref} is not in the schema`);
    }
    return asSchema(found, ref);
  }

  #ref(ref: string, path: string): RuleId {
    const known = this.#refs.get(ref);
    if (known !== undefined) return known;
    const place = this.#builder.reserve();
    this.#refs.set(ref, place);
    this.#builder.define(place, this.#rule(this.#resolve(ref, path), ref === "#" ? "" : ref));
    return place;
  }

  #values(values: readonly unknown[], rest: SchemaObject, path: string): RuleId {
    const { enum: _enum, const: _const, type, ...others } = rest;
    const beside = restrictingKeywords(others).filter((keyword) => keyword !== "enum");
    if (beside.length > 0) {
      throw new SchemaRefusal(path, `is not supported together with ${beside.join(", ")}`);
    }
    const types = type === undefined ? null : typesIn(type, path);
    const both =
      "const" in rest && "enum" in rest
        ? values.filter((value) => hasEqual(listOf(rest["enum"], path), value))
        : values;
    const fitting = both.filter((value) => types === null || types.some((one) => isOf(one, value)));
    if (fitting.length === 0) throw new SchemaRefusal(path, "leaves no value");
    return this.#builder.choice(...fitting.map((value) => this.#json.literal(value)));
  }

  #types(schema: SchemaObject, path: string): readonly TypeName[] {
    if (schema["type"] !== undefined) return typesIn(schema["type"], at(path, "type"));
    const about = restrictingKeywords(schema).flatMap((keyword) => typeOfKeyword[keyword] ?? []);
    return [...new Set(about)].slice(0, 1);
  }

  #typed(type: TypeName, schema: SchemaObject, path: string): RuleId {
    switch (type) {
      case "null":
        return this.#builder.text("null");
      case "boolean":
        return this.#builder.choice(this.#builder.text("true"), this.#builder.text("false"));
      case "string":
        return this.#string(schema, path);
      case "integer":
      case "number":
        return this.#number(type, schema, path);
      case "array":
        return this.#array(schema, path);
      case "object":
        return this.#members(schema, path);
    }
  }

  #string(schema: SchemaObject, path: string): RuleId {
    const min = count(schema, "minLength", path) ?? 0;
    const max = count(schema, "maxLength", path);
    if (max !== null && max < min)
      throw new SchemaRefusal(at(path, "maxLength"), "is less than minLength");
    const patterns: string[] = [];
    const { pattern, format } = schema;
    if (pattern !== undefined) {
      if (typeof pattern !== "string")
        throw new SchemaRefusal(at(path, "pattern"), "must be a string");
      patterns.push(pattern);
    }
    if (format !== undefined) {
      const known = typeof format === "string" ? formatPatterns[format] : undefined;
      if (known === undefined) {
        const names = Object.keys(formatPatterns).join(", ");
        throw new SchemaRefusal(
          at(path, "format"),
          `${JSON.stringify(format)} is not supported; the known ones are ${names}`,
        );
      }
      patterns.push(known);
    }
    const [first, second] = patterns;
    if (first === undefined) return this.#json.string(min, max);
    const keyword = pattern === undefined ? "format" : "pattern";
    // zod writes a pattern beside each of its formats, which says the same more loosely.
    if (second !== undefined && !coversFormat(first, second)) {
      throw new SchemaRefusal(at(path, "pattern"), "is not supported together with this format");
    }
    if (min > 0 || max !== null) {
      throw new SchemaRefusal(
        at(path, keyword),
        "is not supported together with minLength and maxLength; put the length into the pattern",
      );
    }
    try {
      return this.#json.quoted(patternRule(this.#builder, this.#json, second ?? first));
    } catch (error) {
      if (error instanceof PatternRefusal)
        throw new SchemaRefusal(at(path, keyword), error.message);
      throw error;
    }
  }

  #number(type: "number" | "integer", schema: SchemaObject, path: string): RuleId {
    const range = rangeOf(schema, path);
    const multiple = schema["multipleOf"];
    const isBounded = range.min !== null || range.max !== null;
    const isWhole = type === "integer" || (Number.isInteger(multiple) && multiple !== 0);
    if (multiple !== undefined && multiple !== 1)
      return this.#multiples(range, multiple, isWhole, path);
    if (!isBounded) return isWhole ? this.#json.integer : this.#json.number;
    const [low, high] = wholeBounds(range);
    const rule = isWhole
      ? integersBetween(this.#builder, low, high)
      : decimalRange(this.#builder, range);
    if (rule === undefined) throw new SchemaRefusal(path, "leaves no number between its bounds");
    return rule;
  }

  #multiples(range: NumberRange, multiple: unknown, isWhole: boolean, path: string): RuleId {
    if (
      !isWhole ||
      typeof multiple !== "number" ||
      !Number.isSafeInteger(multiple) ||
      multiple < 1
    ) {
      throw new SchemaRefusal(
        at(path, "multipleOf"),
        `${String(multiple)} is not supported; it can be a whole number above 0`,
      );
    }
    const step = BigInt(multiple);
    const [low, high] = wholeBounds(range);
    const first = ((low < 0n ? low : low + step - 1n) / step) * step;
    const values: string[] = [];
    for (let value = first; value <= high; value += step) {
      values.push(String(value));
      if (values.length > maxListed) {
        throw new SchemaRefusal(
          at(path, "multipleOf"),
          `leaves more than ${maxListed} numbers; give narrower bounds with minimum and maximum`,
        );
      }
    }
    if (values.length === 0) throw new SchemaRefusal(path, "leaves no number between its bounds");
    return this.#builder.choice(...values.map((value) => this.#builder.text(value)));
  }

  #array(schema: SchemaObject, path: string): RuleId {
    if (schema["uniqueItems"] === true) {
      throw new SchemaRefusal(at(path, "uniqueItems"), "is not supported");
    }
    const { items } = schema;
    const isOldTuple = Array.isArray(items);
    const given = isOldTuple ? items : schema["prefixItems"];
    const first = given === undefined ? [] : listOf(given, at(path, "prefixItems"));
    const others = isOldTuple ? schema["additionalItems"] : items;
    const min = count(schema, "minItems", path) ?? 0;
    // Further items come only where somebody says what they are, or how many there must be.
    const isOpen = others !== undefined || first.length === 0 || min > first.length;
    const end = count(schema, "maxItems", path);
    const max = others === false || !isOpen ? Math.min(end ?? Infinity, first.length) : end;
    if (max !== null && max < min)
      throw new SchemaRefusal(at(path, "maxItems"), "leaves too few items");
    const item =
      others === false
        ? this.#builder.choice()
        : this.#rule(asSchema(others ?? true, at(path, "items")), at(path, "items"));
    if (first.length === 0) return this.#json.list("[", item, "]", min, max);
    const rules = first.map((one, index) =>
      this.#rule(
        asSchema(one, `${at(path, "prefixItems")}[${index}]`),
        `${at(path, "prefixItems")}[${index}]`,
      ),
    );
    return this.#builder.sequence(
      this.#builder.text("["),
      this.#tuple(rules, item, min, max),
      this.#builder.text("]"),
    );
  }

  #tuple(first: readonly RuleId[], item: RuleId, min: number, max: number | null): RuleId {
    const builder = this.#builder;
    const used = first.slice(0, max ?? undefined);
    const left = max === null ? null : max - used.length;
    const more = builder.repeat(
      builder.sequence(this.#json.comma, item),
      Math.max(0, min - used.length),
      left,
    );
    // From the last to the first: each may be the end once there are enough.
    let rest = more;
    for (const [index, rule] of [...used.entries()].toReversed()) {
      const comma = index === 0 ? [] : [this.#json.comma];
      const here = builder.sequence(...comma, rule, rest);
      rest = index >= min ? builder.optional(here) : here;
    }
    return rest;
  }

  #members(schema: SchemaObject, path: string): RuleId {
    const properties = schema["properties"] ?? {};
    if (!isObject(properties)) throw new SchemaRefusal(at(path, "properties"), "must be an object");
    const required = listOf(schema["required"] ?? [], at(path, "required")).map(String);
    const additional = asSchema(
      schema["additionalProperties"] ?? true,
      at(path, "additionalProperties"),
    );
    const names = [...new Set([...Object.keys(properties), ...required])];
    if (names.length === 0 && additional === true && schema["propertyNames"] === undefined) {
      return this.#json.anyObject;
    }
    const isRequired = new Set(required);
    const members = names.map((name) => {
      const inside = `${at(path, "properties")}.${name}`;
      const own = Object.hasOwn(properties, name) ? asSchema(properties[name], inside) : additional;
      const key = this.#builder.text(JSON.stringify(name));
      return {
        rule: this.#json.member(key, this.#rule(own, inside)),
        isRequired: isRequired.has(name),
      };
    });
    // Other properties come where they are asked for, not wherever they are not forbidden.
    const isOpen =
      additional !== false && (schema["additionalProperties"] !== undefined || names.length === 0);
    const other = isOpen ? this.#otherMember(schema, additional, names, path) : null;
    return this.#builder.sequence(
      this.#builder.text("{"),
      this.#memberList(members, other),
      this.#builder.text("}"),
    );
  }

  #otherMember(
    schema: SchemaObject,
    value: Schema,
    names: readonly string[],
    path: string,
  ): RuleId {
    const rule = this.#rule(value, at(path, "additionalProperties"));
    return this.#json.member(this.#otherKey(schema["propertyNames"], names, path), rule);
  }

  #otherKey(given: unknown, names: readonly string[], path: string): RuleId {
    if (given === undefined || given === true || isPlainString(given)) {
      return names.length === 0 ? this.#json.string() : this.#json.quoted(this.#notAnyOf(names));
    }
    if (names.length > 0) {
      throw new SchemaRefusal(at(path, "propertyNames"), "is not supported beside properties");
    }
    const schema = asSchema(given, at(path, "propertyNames"));
    if (typeof schema === "boolean")
      throw new SchemaRefusal(at(path, "propertyNames"), "allows none");
    return this.#rule({ type: "string", ...schema }, at(path, "propertyNames"));
  }

  /** Strings that are none of these, without escapes: they would be other ways to write the same. */
  #notAnyOf(names: readonly string[]): RuleId {
    const builder = this.#builder;
    const plain = (without: readonly number[]): RuleId => {
      const excluded = without.map((code): CharRange => [code, code]);
      return oneOf(builder, complement([[0, 0x1f], [0x22, 0x22], [0x5c, 0x5c], ...excluded]));
    };
    const anything = builder.repeat(plain([]), 0, null);
    const after = (rests: readonly (readonly number[])[]): RuleId => {
      const isName = rests.some((rest) => rest.length === 0);
      const nexts = [...new Set(rests.flatMap(([code]) => code ?? []))];
      return builder.choice(
        ...(isName ? [] : [builder.text("")]),
        builder.sequence(plain(nexts), anything),
        ...nexts
          .filter((code) => code > 0x1f && code !== 0x22 && code !== 0x5c)
          .map((code) =>
            builder.sequence(
              oneOf(builder, [[code, code]]),
              after(rests.filter(([first]) => first === code).map(([, ...rest]) => rest)),
            ),
          ),
      );
    };
    return after(names.map((name) => Array.from(name, (char) => char.codePointAt(0) ?? 0)));
  }

  #memberList(
    members: readonly { readonly rule: RuleId; readonly isRequired: boolean }[],
    other: RuleId | null,
  ): RuleId {
    const builder = this.#builder;
    const { comma } = this.#json;
    const following =
      other === null ? builder.text("") : builder.repeat(builder.sequence(comma, other), 0, null);
    // What may come behind a member, and what where there was none yet.
    let behind = following;
    let first =
      other === null ? builder.text("") : builder.optional(builder.sequence(other, following));
    for (const { rule, isRequired } of members.toReversed()) {
      const here = builder.sequence(comma, rule, behind);
      const alone = builder.sequence(rule, behind);
      behind = isRequired ? here : builder.choice(here, behind);
      first = isRequired ? alone : builder.choice(alone, first);
    }
    return first;
  }
}

function rangeOf(schema: SchemaObject, path: string): NumberRange {
  const read = (keyword: string): number | null => {
    const value = schema[keyword];
    if (value === undefined) return null;
    if (typeof value === "number" && Number.isFinite(value)) return value;
    throw new SchemaRefusal(at(path, keyword), "must be a number");
  };
  const [min, max] = [read("minimum"), read("maximum")];
  const [above, below] = [read("exclusiveMinimum"), read("exclusiveMaximum")];
  const isMinExclusive = above !== null && (min === null || above >= min);
  const isMaxExclusive = below !== null && (max === null || below <= max);
  return {
    min: isMinExclusive ? above : min,
    max: isMaxExclusive ? below : max,
    isMinExclusive,
    isMaxExclusive,
  };
}

function count(schema: SchemaObject, keyword: string, path: string): number | null {
  const value = schema[keyword];
  if (value === undefined) return null;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new SchemaRefusal(at(path, keyword), "must be a whole number from 0");
}

function typesIn(type: unknown, path: string): readonly TypeName[] {
  const list = Array.isArray(type) ? type : [type];
  return list.map((name) => {
    const known = typeNames.find((one) => one === name);
    if (known !== undefined) return known;
    throw new SchemaRefusal(
      path,
      `${JSON.stringify(name)} is no type; there are ${typeNames.join(", ")}`,
    );
  });
}

function isOf(type: TypeName, value: unknown): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

function hasEqual(values: readonly unknown[], wanted: unknown): boolean {
  const text = JSON.stringify(wanted);
  return values.some((value) => JSON.stringify(value) === text);
}

/** Keywords that say something about a value. */
function restrictingKeywords(schema: SchemaObject): string[] {
  const others = ["type", "enum", "const", "allOf", "anyOf", "oneOf", "$ref", "additionalItems"];
  return Object.keys(schema).filter(
    (keyword) =>
      Object.hasOwn(typeOfKeyword, keyword) ||
      others.includes(keyword) ||
      refusedKeywords.some((refused) => refused === keyword),
  );
}

function restricts(schema: SchemaObject): boolean {
  return restrictingKeywords(schema).length > 0;
}

/** Whether a pattern lets everything through that a format's own pattern does, as far as examples show. */
function coversFormat(pattern: string, format: string): boolean {
  const builder = new GrammarBuilder();
  const grammar = builder.finish(patternRule(builder, new JsonText(builder), format));
  const expression = new RegExp(pattern, "u");
  return Array.from({ length: examples }, () => exampleText(grammar, Math.random)).every((text) =>
    expression.test(text),
  );
}

function isPlainString(schema: unknown): boolean {
  return (
    isObject(schema) && schema["type"] === "string" && restrictingKeywords(schema).length === 1
  );
}

function asSchema(value: unknown, path: string): Schema {
  if (typeof value === "boolean" || isObject(value)) return value;
  throw new SchemaRefusal(path, "must be an object, true or false");
}

function listOf(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new SchemaRefusal(path, "must be a list");
}

function isObject(value: unknown): value is SchemaObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function at(path: string, keyword: string): string {
  return path === "" ? keyword : `${path}.${keyword}`;
}
