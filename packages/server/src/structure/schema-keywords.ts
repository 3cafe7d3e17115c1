import type { GrammarBuilder, RuleId } from "./grammar-builder.js";
import type { JsonText } from "./json-text.js";
import { SchemaRefusal } from "./schema-refusal.js";
import type { Schema, SchemaObject } from "./schemas.js";

/** Helpers for building the rules of a schema. */
export interface SchemaContext {
  readonly builder: GrammarBuilder;
  readonly json: JsonText;
  /** The rule of a nested schema; the path names it in errors. */
  readonly ruleOf: (schema: Schema, path: string) => RuleId;
}

const typeNames = ["object", "array", "string", "number", "integer", "boolean", "null"] as const;
/** A type that a schema can name. */
export type TypeName = (typeof typeNames)[number];

/** Restricting keywords that are not supported; other unknown keywords are ignored. */
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

/** The type of a keyword, for schemas without a type. */
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

/** Keywords that restrict a value. */
export function restrictingKeywords(schema: SchemaObject): string[] {
  const others = ["type", "enum", "const", "allOf", "anyOf", "oneOf", "$ref", "additionalItems"];
  return Object.keys(schema).filter(
    (keyword) =>
      Object.hasOwn(typeOfKeyword, keyword) ||
      others.includes(keyword) ||
      refusedKeywords.some((refused) => refused === keyword),
  );
}

/** Whether a schema restricts a value. */
export function restricts(schema: SchemaObject): boolean {
  return restrictingKeywords(schema).length > 0;
}

/** A number of characters or items; null if unset. */
export function count(schema: SchemaObject, keyword: string, path: string): number | null {
  const value = schema[keyword];
  if (value === undefined) return null;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new SchemaRefusal(at(path, keyword), "must be a whole number from 0");
}

/** Rejects values that are not schemas. */
export function asSchema(value: unknown, path: string): Schema {
  if (typeof value === "boolean" || isObject(value)) return value;
  throw new SchemaRefusal(path, "must be an object, true or false");
}

/** Rejects values that are not lists. */
export function listOf(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new SchemaRefusal(path, "must be a list");
}

/** Whether something is an object of JSON. */
export function isObject(value: unknown): value is SchemaObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The path of a keyword, for errors. */
export function at(path: string, keyword: string): string {
  return path === "" ? keyword : `${path}.${keyword}`;
}
