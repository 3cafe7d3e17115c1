import type { RuleId } from "./grammar-builder.js";
import { asSchema, at, count, listOf, type SchemaContext } from "./schema-keywords.js";
import { SchemaRefusal } from "./schema-refusal.js";
import type { SchemaObject } from "./schemas.js";

/** Lists and tuples. */
export function arrayRule(context: SchemaContext, schema: SchemaObject, path: string): RuleId {
  const { builder, json, ruleOf } = context;
  if (schema["uniqueItems"] === true) {
    throw new SchemaRefusal(at(path, "uniqueItems"), "is not supported");
  }
  const { items } = schema;
  const isOldTuple = Array.isArray(items);
  const given = isOldTuple ? items : schema["prefixItems"];
  const first = given === undefined ? [] : listOf(given, at(path, "prefixItems"));
  const others = isOldTuple ? schema["additionalItems"] : items;
  const min = count(schema, "minItems", path) ?? 0;
  // Further items are generated only if the schema describes them or requires a number of items.
  const isOpen = others !== undefined || first.length === 0 || min > first.length;
  const end = count(schema, "maxItems", path);
  const max = others === false || !isOpen ? Math.min(end ?? Infinity, first.length) : end;
  if (max !== null && max < min)
    throw new SchemaRefusal(at(path, "maxItems"), "leaves too few items");
  const item =
    others === false
      ? builder.choice()
      : ruleOf(asSchema(others ?? true, at(path, "items")), at(path, "items"));
  if (first.length === 0) return json.list("[", item, "]", min, max);
  const rules = first.map((one, index) =>
    ruleOf(
      asSchema(one, `${at(path, "prefixItems")}[${index}]`),
      `${at(path, "prefixItems")}[${index}]`,
    ),
  );
  return builder.sequence(
    builder.text("["),
    tuple(context, rules, item, min, max),
    builder.text("]"),
  );
}

function tuple(
  { builder, json }: SchemaContext,
  first: readonly RuleId[],
  item: RuleId,
  min: number,
  max: number | null,
): RuleId {
  const used = first.slice(0, max ?? undefined);
  const left = max === null ? null : max - used.length;
  const more = builder.repeat(
    builder.sequence(json.comma, item),
    Math.max(0, min - used.length),
    left,
  );
  // From the last to the first: each may be the end once there are enough.
  let rest = more;
  for (const [index, rule] of [...used.entries()].toReversed()) {
    const comma = index === 0 ? [] : [json.comma];
    const here = builder.sequence(...comma, rule, rest);
    rest = index >= min ? builder.optional(here) : here;
  }
  return rest;
}
