import type { Grammar } from "@tinker-ts/engine";
import { textUpTo } from "./free-text.js";
import { GrammarBuilder, type RuleId } from "./grammar-builder.js";
import { addSchema } from "./json-schema.js";

/** How a model writes calls. */
export type CallFormat =
  /** `<tool_call>{…}</tool_call>`, or tags inside the same marks. */
  | "tagged"
  /** The whole answer is a JSON object, or several with `;` between them. */
  | "bare"
  /** `[TOOL_CALLS]` and a list, or a name and its arguments. */
  | "listed";

/** How a model marks its thoughts. */
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

/** What an answer must look like: JSON or calls, behind thoughts. Plain data: it travels between threads. */
export interface AnswerShape {
  readonly json: { readonly schema: unknown } | null;
  readonly calls: CallShape | null;
  /** Thoughts that may come first; or do, where the prompt has opened them. */
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

/** Calls as the model's template writes them. */
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

/** Thoughts are free; what is demanded comes behind them. */
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
