import { exampleText } from "./example-text.js";
import { GrammarBuilder, type RuleId } from "./grammar-builder.js";
import { JsonText } from "./json-text.js";
import { PatternRefusal, patternRule } from "./regular-expression.js";
import { at, count, type SchemaContext } from "./schema-keywords.js";
import { SchemaRefusal } from "./schema-refusal.js";
import type { SchemaObject } from "./schemas.js";

/** Number of example texts of a format to test a pattern with. */
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
  // zod writes an equivalent but looser pattern beside each of its formats.
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

/** Whether a pattern accepts all example texts of a format. */
function coversFormat(pattern: string, format: string): boolean {
  const builder = new GrammarBuilder();
  const grammar = builder.finish(patternRule(builder, new JsonText(builder), format));
  const expression = new RegExp(pattern, "u");
  return Array.from({ length: examples }, () => exampleText(grammar, Math.random)).every((text) =>
    expression.test(text),
  );
}

const year = "[12]\\d{3}";
const date = `${year}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))`;
const clock = "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?";
const zone = "(?:Z|[+-](?:0\\d|1[0-3]):[0-5]\\d)";
const byte = "(?:\\d|[1-9]\\d|1\\d\\d|2[0-4]\\d|25[0-5])";
const group = "[0-9a-f]{1,4}";
const label = "[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?";
const domain = `${label}(?:\\.${label}){0,4}`;

/** Patterns of formats: all of their matches are valid, though not all valid texts match. */
const formatPatterns: Readonly<Record<string, string>> = {
  date: `^${date}$`,
  time: `^${clock}${zone}$`,
  "date-time": `^${date}T${clock}Z$`,
  duration: "^P(?:\\d{1,4}W|\\d{1,4}D(?:T\\d{1,4}H)?|T(?:\\d{1,4}H)?\\d{1,4}M|T\\d{1,4}S)$",
  email: `^[a-z0-9_+-]{1,30}(?:\\.[a-z0-9_+-]{1,30}){0,3}@(?:${label}\\.){1,3}[a-z]{2,10}$`,
  hostname: `^${domain}$`,
  ipv4: `^${byte}(?:\\.${byte}){3}$`,
  ipv6: `^${group}(?::${group}){7}$`,
  uuid: "^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
  uri: "^https?://(?:[a-z]{1,12}\\.){1,3}[a-z]{2,6}(?::[1-9]\\d{0,3})?(?:/[A-Za-z0-9._~-]{0,40}){0,8}(?:\\?[A-Za-z0-9._~=&-]{0,80})?$",
};
