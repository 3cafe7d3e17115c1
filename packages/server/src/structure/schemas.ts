import { SchemaRefusal } from "./schema-refusal.js";

/** A JSON schema that is an object. */
export type SchemaObject = Readonly<Record<string, unknown>>;

/** A JSON schema: an object, or a boolean that accepts everything or nothing. */
export type Schema = SchemaObject | boolean;

/** The target of a reference such as `#/$defs/item`; undefined if there is none. */
export function resolveRef(root: Schema, ref: string): unknown {
  if (ref === "#") return root;
  if (!ref.startsWith("#/")) return undefined;
  let current: unknown = root;
  for (const part of ref.slice(2).split("/")) {
    const key = decoded(part)?.replaceAll("~1", "/").replaceAll("~0", "~");
    if (key === undefined) return undefined;
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, key)) {
      return undefined;
    }
    current = (current as Record<string, unknown>)[key];
  }
  return current;
}

/** A part of a reference without its percent signs; undefined where they encode no text. */
function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

const notes = new Set([
  "title",
  "description",
  "default",
  "examples",
  "$schema",
  "$comment",
  "$id",
]);

/** One schema equivalent to all of these; rejects combinations that one schema cannot express. */
export function mergeSchemas(schemas: readonly Schema[], path: string): Schema {
  if (schemas.includes(false)) return false;
  const objects = schemas.filter((schema) => typeof schema === "object");
  const closed = objects.filter((schema) => schema["additionalProperties"] === false);
  const withProperties = objects.filter((schema) => "properties" in schema);
  if (closed.length > 0 && withProperties.length > 1 && !haveSameKeys(withProperties)) {
    throw new SchemaRefusal(
      path,
      "joins properties although additionalProperties is false; list all of them in one place",
    );
  }
  return objects.reduce<SchemaObject>((merged, schema) => mergeTwo(merged, schema, path), {});
}

function mergeTwo(a: SchemaObject, b: SchemaObject, path: string): SchemaObject {
  const result: Record<string, unknown> = { ...a };
  for (const [keyword, value] of Object.entries(b)) {
    const own = result[keyword];
    if (own === undefined || notes.has(keyword) || JSON.stringify(own) === JSON.stringify(value)) {
      result[keyword] = value;
    } else {
      result[keyword] = mergeKeyword(keyword, own, value, path);
    }
  }
  return result;
}

function mergeKeyword(keyword: string, a: unknown, b: unknown, path: string): unknown {
  switch (keyword) {
    case "properties": {
      const [own, other] = [a as SchemaObject, b as SchemaObject];
      const both = Object.keys(other).filter((name) => Object.hasOwn(own, name));
      const merged = both.map((name) => [name, { allOf: [own[name], other[name]] }] as const);
      return { ...own, ...other, ...Object.fromEntries(merged) };
    }
    case "required":
      return [...new Set([...(a as unknown[]), ...(b as unknown[])])];
    case "$defs":
    case "definitions":
      return { ...(a as object), ...(b as object) };
    case "type": {
      const [own, other] = [a, b].map((type) => (Array.isArray(type) ? type : [type]));
      const common = own!.filter((type) => other!.includes(type));
      if (common.length > 0) return common;
      if (own!.includes("number") && other!.includes("integer")) return "integer";
      if (own!.includes("integer") && other!.includes("number")) return "integer";
      break;
    }
    case "additionalProperties":
      if (a === true) return b;
      if (b === true) return a;
      if (a === false || b === false) return false;
      break;
    case "minimum":
    case "exclusiveMinimum":
    case "minLength":
    case "minItems":
      return Math.max(Number(a), Number(b));
    case "maximum":
    case "exclusiveMaximum":
    case "maxLength":
    case "maxItems":
      return Math.min(Number(a), Number(b));
    case "enum": {
      const texts = new Set((b as unknown[]).map((value) => JSON.stringify(value)));
      return (a as unknown[]).filter((value) => texts.has(JSON.stringify(value)));
    }
    default:
  }
  throw new SchemaRefusal(path, `says ${keyword} twice, which cannot be joined`);
}

function haveSameKeys(schemas: readonly SchemaObject[]): boolean {
  const keys = schemas.map((schema) => Object.keys(schema["properties"] as object).toSorted());
  return keys.every((own) => JSON.stringify(own) === JSON.stringify(keys[0]));
}

/** Whether certainly no value matches both. */
export function areDisjoint(a: Schema, b: Schema): boolean {
  if (a === false || b === false) return true;
  if (a === true || b === true) return false;
  const [aTypes, bTypes] = [kindsOf(a), kindsOf(b)];
  if (aTypes && bTypes && !aTypes.some((type) => bTypes.includes(type))) return true;
  const [aValues, bValues] = [valuesOf(a), valuesOf(b)];
  if (aValues && bValues) return !aValues.some((value) => bValues.includes(value));
  const [aProperties, bProperties] = [requiredOf(a), requiredOf(b)];
  if (!aTypes?.every((type) => type === "object") || !bTypes?.every((type) => type === "object")) {
    return false;
  }
  return [...aProperties].some(([name, schema]) => {
    const other = bProperties.get(name);
    return other !== undefined && areDisjoint(schema, other);
  });
}

/** The types of a schema, whole numbers counted as numbers; undefined without a type. */
function kindsOf(schema: SchemaObject): readonly string[] | undefined {
  const { type } = schema;
  const values = valuesOf(schema)?.map((value): unknown => JSON.parse(value));
  if (values) return values.map(kindOf);
  if (type === undefined) return undefined;
  const types: unknown[] = Array.isArray(type) ? type : [type];
  return types.map((name) =>
    name === "integer" ? "number" : typeof name === "string" ? name : "",
  );
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function valuesOf(schema: SchemaObject): readonly string[] | undefined {
  if ("const" in schema) return [JSON.stringify(schema["const"])];
  const values = schema["enum"];
  return Array.isArray(values) ? values.map((value) => JSON.stringify(value)) : undefined;
}

function requiredOf(schema: SchemaObject): Map<string, Schema> {
  const properties = (schema["properties"] ?? {}) as Record<string, Schema>;
  const required = Array.isArray(schema["required"]) ? schema["required"].map(String) : [];
  return new Map(
    required.flatMap((name) =>
      Object.hasOwn(properties, name) ? [[name, properties[name]!]] : [],
    ),
  );
}
