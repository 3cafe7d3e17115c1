import type { Grammar } from "@tinker-ts/engine";
import { arrayRule } from "./array-schema.js";
import { GrammarBuilder, type RuleId } from "./grammar-builder.js";
import { JsonText } from "./json-text.js";
import { numberRule } from "./number-schema.js";
import { objectRule } from "./object-schema.js";
import {
  asSchema,
  at,
  isObject,
  listOf,
  refusedKeywords,
  restrictingKeywords,
  restricts,
  typeOfKeyword,
  typesIn,
  type SchemaContext,
  type TypeName,
} from "./schema-keywords.js";
import { SchemaRefusal } from "./schema-refusal.js";
import {
  areDisjoint,
  mergeSchemas,
  resolveRef,
  type Schema,
  type SchemaObject,
} from "./schemas.js";
import { stringRule } from "./string-schema.js";

/** Schemas inside schemas. */
const maxDepth = 200;

/**
 * The texts that match a JSON schema.
 *
 * Every text of the grammar is an answer that validates; not every valid answer is a text of the grammar:
 * properties come in the order of the schema, others only if they are required explicitly, numbers have
 * a bounded number of digits. Unsupported keywords are rejected by name.
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
  readonly #context: SchemaContext;
  readonly #refs = new Map<string, RuleId>();
  #depth = 0;

  constructor(builder: GrammarBuilder, root: Schema) {
    this.#builder = builder;
    this.#json = new JsonText(builder);
    this.#root = root;
    const ruleOf = (schema: Schema, path: string): RuleId => this.#rule(schema, path);
    this.#context = { builder, json: this.#json, ruleOf };
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

  /** Exactly one branch must match, so no two may match the same value. */
  #checkExclusive(schemas: readonly Schema[], path: string): void {
    const inlined = schemas.map((schema) => this.#inlined(schema, path));
    for (const [index, schema] of inlined.entries()) {
      for (const other of inlined.slice(index + 1)) {
        if (areDisjoint(schema, other)) continue;
        throw new SchemaRefusal(
          path,
          "two of its branches may fit the same value; distinguish them by a constant, or use anyOf",
        );
      }
    }
  }

  /** A schema with a top-level reference replaced by its target. */
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
        return stringRule(this.#context, schema, path);
      case "integer":
      case "number":
        return numberRule(this.#context, type, schema, path);
      case "array":
        return arrayRule(this.#context, schema, path);
      case "object":
        return objectRule(this.#context, schema, path);
    }
  }
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
