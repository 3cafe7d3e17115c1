import type { GrammarBuilder, RuleId } from "./grammar-builder.js";
import type { JsonText } from "./json-text.js";
import { SchemaRefusal } from "./schema-refusal.js";
import type { Schema, SchemaObject } from "./schemas.js";

/** What the rules of a schema are made with. */
export interface SchemaContext {
  readonly builder: GrammarBuilder;
  readonly json: JsonText;
  /** The rule of a schema inside; the path names it in refusals. */
  readonly ruleOf: (schema: Schema, path: string) => RuleId;
}

const typeNames = ["object", "array", "string", "number", "integer", "boolean", "null"] as const;
/** A type that a schema can name. */
export type TypeName = (typeof typeNames)[number];

/** What restricts an answer and is not enforced here; everything else that is unknown says nothing. */
export const refusedKeywords = [
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
export const typeOfKeyword: Readonly<Record<string, TypeName>> = {
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

/** The types that a schema names. */
export function typesIn(type: unknown, path: string): readonly TypeName[] {
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

/** Keywords that say something about a value. */
export function restrictingKeywords(schema: SchemaObject): string[] {
  const others = ["type", "enum", "const", "allOf", "anyOf", "oneOf", "$ref", "additionalItems"];
  return Object.keys(schema).filter(
    (keyword) =>
      Object.hasOwn(typeOfKeyword, keyword) ||
      others.includes(keyword) ||
      refusedKeywords.some((refused) => refused === keyword),
  );
}

/** Whether a schema says anything about a value. */
export function restricts(schema: SchemaObject): boolean {
  return restrictingKeywords(schema).length > 0;
}

/** A number of characters or items; null where nothing is said. */
export function count(schema: SchemaObject, keyword: string, path: string): number | null {
  const value = schema[keyword];
  if (value === undefined) return null;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new SchemaRefusal(at(path, keyword), "must be a whole number from 0");
}

/** Refuses what is no schema. */
export function asSchema(value: unknown, path: string): Schema {
  if (typeof value === "boolean" || isObject(value)) return value;
  throw new SchemaRefusal(path, "must be an object, true or false");
}

/** Refuses what is no list. */
export function listOf(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new SchemaRefusal(path, "must be a list");
}

/** Whether something is an object of JSON. */
export function isObject(value: unknown): value is SchemaObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The path of a keyword, for refusals. */
export function at(path: string, keyword: string): string {
  return path === "" ? keyword : `${path}.${keyword}`;
}
