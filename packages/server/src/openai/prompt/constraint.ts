import type { SampleConstraint } from "@tinker-ts/engine";
import type { Tokenizer } from "@tinker-ts/hub";
import { textUpTo } from "../../structure/free-text.js";
import { GrammarBuilder, type RuleId } from "../../structure/grammar-builder.js";
import { addSchema } from "../../structure/json-schema.js";
import { JsonText } from "../../structure/json-text.js";
import { SchemaRefusal } from "../../structure/schema-refusal.js";
import { invalid } from "../openai-error.js";
import type { ResponseFormat } from "../request/response-format.js";
import type { Tool, ToolFields } from "../request/tools.js";
import type { AnswerFormat, ThinkingMarks } from "../sections/answer-format.js";

/** Where an answer begins. */
export interface AnswerStart {
  readonly format: AnswerFormat;
  /** Whether the prompt has opened thoughts. */
  readonly startsThinking: boolean;
  /** Whether the model may begin with thoughts by itself. */
  readonly mayThink: boolean;
}

const anything: ResponseFormat = { type: "text" };

/** What an answer must look like, if that was asked: JSON, a schema, a call of a tool; after its thoughts. */
export function answerConstraint(
  tokenizer: Tokenizer,
  start: AnswerStart,
  format: ResponseFormat = anything,
  { tools, choice, isParallel }: ToolFields = { tools: [], choice: "none", isParallel: true },
): SampleConstraint | undefined {
  const builder = new GrammarBuilder();
  const mustCall = choice === "required" || typeof choice === "object";
  if (!mustCall && format.type === "text") return undefined;
  const called =
    typeof choice === "object" ? tools.filter(({ name }) => name === choice.name) : tools;
  const isOne = typeof choice === "object" || !isParallel;
  const answer = mustCall
    ? refusing("tools", () => callRule(builder, start.format, called, isOne))
    : refusing("response_format", () => formatRule(builder, format, start, tools, choice));
  const grammar = refusing(mustCall ? "tools" : "response_format", () =>
    builder.finish(withThoughts(builder, start, answer)),
  );
  const marks = marksOf(start.format);
  const textTokens = marks.flatMap((mark) => tokenizer.specialTokens.get(mark) ?? []);
  return { grammar, textTokens };
}

function formatRule(
  builder: GrammarBuilder,
  format: ResponseFormat,
  start: AnswerStart,
  tools: readonly Tool[],
  choice: ToolFields["choice"],
): RuleId {
  const json =
    format.type === "json_schema"
      ? addSchema(builder, format.schema)
      : new JsonText(builder).anyObject;
  // With tools the model may call one instead of answering.
  if (tools.length === 0 || choice === "none") return json;
  return builder.choice(json, callRule(builder, start.format, tools, false));
}

/** Calls as the model's template writes them. */
function callRule(
  builder: GrammarBuilder,
  { calls }: AnswerFormat,
  tools: readonly Tool[],
  isOne: boolean,
): RuleId {
  const key = calls === "bare" ? "parameters" : "arguments";
  const call = builder.choice(
    ...tools.map(({ name, parameters }) =>
      builder.sequence(
        builder.text(`{"name": ${JSON.stringify(name)}, "${key}": `),
        addSchema(builder, parameters ?? { type: "object", additionalProperties: false }),
        builder.text("}"),
      ),
    ),
  );
  const more = isOne ? 0 : null;
  const [open, between, close] =
    calls === "tagged"
      ? ["<tool_call>\n", "\n</tool_call>\n<tool_call>\n", "\n</tool_call>"]
      : calls === "listed"
        ? ["[TOOL_CALLS][", ", ", "]"]
        : ["", "; ", ""];
  const others = builder.repeat(builder.sequence(builder.text(between), call), 0, more);
  return builder.sequence(builder.text(open), call, others, builder.text(close));
}

/** Thoughts are free; what is demanded comes behind them. */
function withThoughts(
  builder: GrammarBuilder,
  { format, startsThinking, mayThink }: AnswerStart,
  answer: RuleId,
): RuleId {
  const { thinking } = format;
  if (thinking === null || (!startsThinking && !mayThink)) return answer;
  const thoughts = builder.sequence(
    textUpTo(builder, thinking.close),
    builder.repeat(builder.text("\n"), 0, 2),
    answer,
  );
  if (startsThinking) return thoughts;
  return builder.choice(builder.sequence(builder.text(thinking.open), thoughts), answer);
}

function marksOf({ thinking, calls }: AnswerFormat): readonly string[] {
  const ofThoughts: readonly string[] = thinking === null ? [] : marksIn(thinking);
  const ofCalls = calls === "listed" ? ["[TOOL_CALLS]"] : ["<tool_call>", "</tool_call>"];
  return [...ofThoughts, ...ofCalls];
}

function marksIn({ open, close }: ThinkingMarks): readonly string[] {
  return [open, close];
}

function refusing<T>(param: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof SchemaRefusal)
      throw invalid(param, error.message, "unsupported_parameter");
    throw error;
  }
}
