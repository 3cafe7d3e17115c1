import type { SampleConstraint } from "@tinker-ts/engine";
import type { Tokenizer } from "@tinker-ts/hub";
import type { Workers } from "../../workers/workers.js";
import type { AnswerShape } from "../../structure/answer-grammar.js";
import { invalid } from "../openai-error.js";
import type { ResponseFormat, ToolFields } from "../request/chat-request.js";
import type { AnswerFormat } from "../sections/section-reader.js";

/** State of thoughts at the start of an answer. */
export interface AnswerStart {
  readonly format: AnswerFormat;
  /** Whether the prompt has opened thoughts. */
  readonly startsThinking: boolean;
  /** Whether the model may begin with thoughts. */
  readonly mayThink: boolean;
}

/** The request's options that constrain an answer. */
export interface Demand {
  readonly start: AnswerStart;
  readonly format: ResponseFormat;
  readonly tools: ToolFields;
}

/** The requested form of an answer, after its thoughts: JSON, a schema or a tool call. */
export async function answerConstraint(
  workers: Workers,
  owner: string,
  tokenizer: Tokenizer,
  demand: Demand,
): Promise<SampleConstraint | undefined> {
  const shape = shapeOf(demand);
  if (shape === undefined) return undefined;
  const made = await workers.grammar(owner, shape);
  if ("problem" in made) {
    const param = shape.json === null ? "tools" : "response_format";
    throw invalid(param, made.problem, "unsupported_parameter");
  }
  const marks = marksOf(demand.start.format);
  const textTokens = marks.flatMap((mark) => tokenizer.specialTokens.get(mark) ?? []);
  return { grammar: made.grammar, textTokens };
}

function shapeOf({ start, format, tools: given }: Demand): AnswerShape | undefined {
  const { tools, choice, isParallel } = given;
  const { format: written, startsThinking, mayThink } = start;
  const { thinking: marks, calls } = written;
  const thinking =
    marks !== null && (startsThinking || mayThink) ? { ...marks, isOpen: startsThinking } : null;
  const isNamed = typeof choice === "object";
  if (isNamed || choice === "required") {
    const functions = isNamed ? tools.filter(({ name }) => name === choice.name) : tools;
    const isOne = isNamed || !isParallel;
    return {
      json: null,
      calls: { format: calls, functions: functions.map(plain), isOne },
      thinking,
    };
  }
  if (format.type === "text") return undefined;
  // With tools the model may call one instead of answering.
  const mayCall = tools.length > 0 && choice !== "none";
  return {
    json: { schema: format.type === "json_schema" ? format.schema : { type: "object" } },
    calls: mayCall ? { format: calls, functions: tools.map(plain), isOne: false } : null,
    thinking,
  };
}

function plain({ name, parameters }: ToolFields["tools"][number]) {
  return { name, parameters };
}

function marksOf({ thinking, calls }: AnswerFormat): readonly string[] {
  const ofThoughts = thinking === null ? [] : [thinking.open, thinking.close];
  const ofCalls = calls === "listed" ? ["[TOOL_CALLS]"] : ["<tool_call>", "</tool_call>"];
  return [...ofThoughts, ...ofCalls];
}
