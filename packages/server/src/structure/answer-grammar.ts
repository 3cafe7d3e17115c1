import { GrammarBuilder, type RuleId } from "./grammar-builder.js";
import { addSchema } from "./json-schema.js";
import type { Grammar } from "@tinker-ts/engine";

/** A model's notation of calls. */
export type CallFormat =
  /** `<tool_call>{…}</tool_call>`, or tags inside the same marks. */
  | "tagged"
  /** The whole answer is a JSON object, or several with `;` between them. */
  | "bare"
  /** `[TOOL_CALLS]` and a list, or a name and its arguments. */
  | "listed";

/** A model's marks of thoughts. */
export interface ThinkingMarks {
  readonly open: string;
  readonly close: string;
}

/** Calls that an answer may be. */
export interface CallShape {
  readonly format: CallFormat;
  /** The schema of a function's arguments is null when it has none. */
  readonly functions: readonly { readonly name: string; readonly parameters: unknown }[];
  readonly isOne: boolean;
}

/** The required form of an answer: JSON or calls, after thoughts. Plain data, so that it can be sent between threads. */
export interface AnswerShape {
  readonly json: { readonly schema: unknown } | null;
  readonly calls: CallShape | null;
  /** Thoughts that may come first, or must if the prompt has opened them. */
  readonly thinking: (ThinkingMarks & { readonly isOpen: boolean }) | null;
}

/** The texts of such answers. */
export function answerGrammar({ json, calls, thinking }: AnswerShape): Grammar {
  const builder = new GrammarBuilder();
  const answer = builder.choice(
    ...(json === null ? [] : [addSchema(builder, json.schema)]),
    ...(calls === null ? [] : [callRule(builder, calls)]),
  );
  return builder.finish(thinking === null ? answer : withThoughts(builder, thinking, answer));
}

/** Calls in the notation of the model's template. */
function callRule(builder: GrammarBuilder, { format, functions, isOne }: CallShape): RuleId {
  const key = format === "bare" ? "parameters" : "arguments";
  const call = builder.choice(
    ...functions.map(({ name, parameters }) =>
      builder.sequence(
        builder.text(`{"name": ${JSON.stringify(name)}, "${key}": `),
        addSchema(builder, parameters ?? { type: "object", additionalProperties: false }),
        builder.text("}"),
      ),
    ),
  );
  const more = isOne ? 0 : null;
  const [open, between, close] =
    format === "tagged"
      ? ["<tool_call>\n", "\n</tool_call>\n<tool_call>\n", "\n</tool_call>"]
      : format === "listed"
        ? ["[TOOL_CALLS][", ", ", "]"]
        : ["", "; ", ""];
  const others = builder.repeat(builder.sequence(builder.text(between), call), 0, more);
  return builder.sequence(builder.text(open), call, others, builder.text(close));
}

/** Thoughts are free; the required form follows them. */
function withThoughts(
  builder: GrammarBuilder,
  { open, close, isOpen }: ThinkingMarks & { readonly isOpen: boolean },
  answer: RuleId,
): RuleId {
  const thoughts = builder.sequence(
    textUpTo(builder, close),
    builder.repeat(builder.text("\n"), 0, 2),
    answer,
  );
  if (isOpen) return thoughts;
  return builder.choice(builder.sequence(builder.text(open), thoughts), answer);
}

/** Any bytes up to and with the first occurrence of a mark. */
function textUpTo(builder: GrammarBuilder, mark: string): RuleId {
  const bytes = Buffer.from(mark);
  // One rule per number of bytes of the mark that the text ends with.
  const places = Array.from(bytes, () => builder.reserve());
  for (const [matched, place] of places.entries()) {
    const byTarget = new Map<number, [number, number][]>();
    for (let byte = 0; byte < 256; byte++) {
      const target = matchedAfter(bytes, matched, byte);
      const ranges = byTarget.get(target) ?? [];
      const last = ranges.at(-1);
      if (last && last[1] === byte - 1) last[1] = byte;
      else ranges.push([byte, byte]);
      byTarget.set(target, ranges);
    }
    const ways = [...byTarget].map(([target, ranges]) => {
      const byte = builder.byte(...ranges);
      const next = places[target];
      return next === undefined ? byte : builder.sequence(byte, next);
    });
    builder.define(place, builder.choice(...ways));
  }
  return places[0]!;
}

/** Length of a mark's prefix at the end of a text after one more byte. */
function matchedAfter(mark: Uint8Array, matched: number, byte: number): number {
  const text = [...mark.subarray(0, matched), byte];
  for (let length = Math.min(text.length, mark.length); length > 0; length--) {
    const tail = text.slice(text.length - length);
    if (tail.every((value, index) => value === mark[index])) return length;
  }
  return 0;
}
