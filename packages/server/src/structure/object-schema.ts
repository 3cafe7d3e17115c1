import { complement, oneOf, type CharRange } from "./characters.js";
import type { GrammarBuilder, RuleId } from "./grammar-builder.js";
import {
  asSchema,
  at,
  isObject,
  listOf,
  restrictingKeywords,
  type SchemaContext,
} from "./schema-keywords.js";
import { SchemaRefusal } from "./schema-refusal.js";
import type { Schema, SchemaObject } from "./schemas.js";

/** Objects: the properties in the order of the schema, then others. */
export function objectRule(context: SchemaContext, schema: SchemaObject, path: string): RuleId {
  const { builder, json, ruleOf } = context;
  const properties = schema["properties"] ?? {};
  if (!isObject(properties)) throw new SchemaRefusal(at(path, "properties"), "must be an object");
  const required = listOf(schema["required"] ?? [], at(path, "required")).map(String);
  const additional = asSchema(
    schema["additionalProperties"] ?? true,
    at(path, "additionalProperties"),
  );
  const names = [...new Set([...Object.keys(properties), ...required])];
  if (names.length === 0 && additional === true && schema["propertyNames"] === undefined) {
    return json.anyObject;
  }
  const isRequired = new Set(required);
  const members = names.map((name) => {
    const inside = `${at(path, "properties")}.${name}`;
    const own = Object.hasOwn(properties, name) ? asSchema(properties[name], inside) : additional;
    const key = builder.text(JSON.stringify(name));
    return {
      rule: json.member(key, ruleOf(own, inside)),
      isRequired: isRequired.has(name),
    };
  });
  // Other properties are generated only if the schema describes them, not whenever they are allowed.
  const isOpen =
    additional !== false && (schema["additionalProperties"] !== undefined || names.length === 0);
  const other = isOpen ? otherMember(context, schema, additional, names, path) : null;
  return builder.sequence(
    builder.text("{"),
    memberList(context, members, other),
    builder.text("}"),
  );
}

function otherMember(
  context: SchemaContext,
  schema: SchemaObject,
  value: Schema,
  names: readonly string[],
  path: string,
): RuleId {
  const rule = context.ruleOf(value, at(path, "additionalProperties"));
  return context.json.member(otherKey(context, schema["propertyNames"], names, path), rule);
}

function otherKey(
  { builder, json, ruleOf }: SchemaContext,
  given: unknown,
  names: readonly string[],
  path: string,
): RuleId {
  if (given === undefined || given === true || isPlainString(given)) {
    return names.length === 0 ? json.string() : json.quoted(notAnyOf(builder, names));
  }
  if (names.length > 0) {
    throw new SchemaRefusal(at(path, "propertyNames"), "is not supported beside properties");
  }
  const schema = asSchema(given, at(path, "propertyNames"));
  if (typeof schema === "boolean")
    throw new SchemaRefusal(at(path, "propertyNames"), "allows none");
  return ruleOf({ type: "string", ...schema }, at(path, "propertyNames"));
}

/** Strings that are none of these, without escapes, which could spell the same strings. */
function notAnyOf(builder: GrammarBuilder, names: readonly string[]): RuleId {
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

function memberList(
  { builder, json }: SchemaContext,
  members: readonly { readonly rule: RuleId; readonly isRequired: boolean }[],
  other: RuleId | null,
): RuleId {
  const { comma } = json;
  const following =
    other === null ? builder.text("") : builder.repeat(builder.sequence(comma, other), 0, null);
  // The rest after a member, and the rest if there was none yet.
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

function isPlainString(schema: unknown): boolean {
  return (
    isObject(schema) && schema["type"] === "string" && restrictingKeywords(schema).length === 1
  );
}
