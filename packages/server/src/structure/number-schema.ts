import type { GrammarBuilder, RuleId } from "./grammar-builder.js";
import { decimalRange, integersBetween, wholeBounds, type NumberRange } from "./number-range.js";
import { at, type SchemaContext } from "./schema-keywords.js";
import { SchemaRefusal } from "./schema-refusal.js";
import type { SchemaObject } from "./schemas.js";

/** Maximum number of multiples in a range to list one by one. */
const maxListed = 2000;

/** Numbers between bounds, or multiples of one. */
export function numberRule(
  { builder, json }: SchemaContext,
  type: "number" | "integer",
  schema: SchemaObject,
  path: string,
): RuleId {
  const range = rangeOf(schema, path);
  const multiple = schema["multipleOf"];
  const isBounded = range.min !== null || range.max !== null;
  const isWhole = type === "integer" || (Number.isInteger(multiple) && multiple !== 0);
  if (multiple !== undefined && multiple !== 1)
    return multiples(builder, range, multiple, isWhole, path);
  if (!isBounded) return isWhole ? json.integer : json.number;
  const [low, high] = wholeBounds(range);
  const rule = isWhole ? integersBetween(builder, low, high) : decimalRange(builder, range);
  if (rule === undefined) throw new SchemaRefusal(path, "leaves no number between its bounds");
  return rule;
}

function multiples(
  builder: GrammarBuilder,
  range: NumberRange,
  multiple: unknown,
  isWhole: boolean,
  path: string,
): RuleId {
  if (!isWhole || typeof multiple !== "number" || !Number.isSafeInteger(multiple) || multiple < 1) {
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
  return builder.choice(...values.map((value) => builder.text(value)));
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
