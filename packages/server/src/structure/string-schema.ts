import { exampleText } from "./example-text.js";
import { formatPatterns } from "./formats.js";
import { GrammarBuilder, type RuleId } from "./grammar-builder.js";
import { JsonText } from "./json-text.js";
import { PatternRefusal, patternRule } from "./regular-expression.js";
import { at, count, type SchemaContext } from "./schema-keywords.js";
import { SchemaRefusal } from "./schema-refusal.js";
import type { SchemaObject } from "./schemas.js";

/** Texts of a format that a pattern beside it is tried with. */
const examples = 300;

/** Strings of a length, of a pattern, or of a format. */
export function stringRule(
  { builder, json }: SchemaContext,
  schema: SchemaObject,
  path: string,
): RuleId {
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
  if (first === undefined) return json.string(min, max);
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
    return json.quoted(patternRule(builder, json, second ?? first));
  } catch (error) {
    if (error instanceof PatternRefusal) throw new SchemaRefusal(at(path, keyword), error.message);
    throw error;
  }
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
