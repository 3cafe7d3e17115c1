import { ArgumentError, type SamplingClient } from "tinker-ts";
import type { Renderer } from "../renderers/index.js";
import { textOf } from "../renderers/index.js";
import type { EvalExample, Grade, Grader } from "./task.js";

/** Right when the texts are equal, except for surrounding white space. */
export function exactMatch({ ignoreCase = false } = {}): Grader {
  const normal = (text: string): string => (ignoreCase ? text.trim().toLowerCase() : text.trim());
  return ({ text }, example) => verdict(normal(text) === normal(wantedText(example)));
}

/** Right when the answer contains the expected text. */
export function includesMatch({ ignoreCase = true } = {}): Grader {
  const normal = (text: string): string => (ignoreCase ? text.toLowerCase() : text);
  return ({ text }, example) => verdict(normal(text).includes(normal(wantedText(example)).trim()));
}

/** Right when the last number of the answer equals the expected one within a tolerance. */
export function numericMatch({ tolerance = 1e-6, relative = 1e-6 } = {}): Grader {
  return ({ text }, example) => {
    const wanted = lastNumber(wantedText(example));
    const found = lastNumber(text);
    if (wanted === undefined) throw new ArgumentError("answer", "has no number to compare with");
    const isRight =
      found !== undefined &&
      Math.abs(found - wanted) <= Math.max(tolerance, relative * Math.abs(wanted));
    return { ...verdict(isRight), logs: { found: found ?? "no number", wanted } };
  };
}

/**
 * Right when the answer matches: the pattern given here, or the wanted answer as one. With a group in the
 * pattern given here, what the group catches must be the wanted answer.
 */
export function regexMatch(pattern?: string | RegExp): Grader {
  const fixed = pattern === undefined ? undefined : new RegExp(pattern);
  return ({ text }, example) => {
    const match = (fixed ?? new RegExp(wantedText(example))).exec(text);
    if (!match || !fixed || match[1] === undefined) return verdict(match !== null);
    return {
      ...verdict(match[1].trim() === wantedText(example).trim()),
      logs: { found: match[1] },
    };
  };
}

/** Right when the answer is JSON, alone or in a fence, that fits a schema: the one given, or the wanted answer. */
export async function jsonSchemaMatch(schema?: object): Promise<Grader> {
  const { Ajv } = await import("ajv");
  const ajv = new Ajv({ allErrors: true, strict: false });
  const fixed = schema && ajv.compile(schema);
  return ({ text }, { answer }) => {
    const validate = fixed ?? ajv.compile(answer as object);
    const fenced = /```(?:json)?\s*([\s\S]*?)```/.exec(text)?.[1];
    let value: unknown;
    try {
      value = JSON.parse(fenced ?? text);
    } catch (error) {
      return { reward: 0, metrics: { is_json: 0 }, logs: { problem: (error as Error).message } };
    }
    const isRight = validate(value);
    const problem = isRight ? {} : { logs: { problem: ajv.errorsText(validate.errors) } };
    return { ...verdict(isRight), metrics: { is_json: 1 }, ...problem };
  };
}

/** A model that judges, and how it is asked. */
export interface JudgeOptions {
  readonly sampling: SamplingClient;
  readonly renderer: Renderer;
  /** What the judge reads; `{question}`, `{answer}` and `{wanted}` are filled in. @default a plain comparison */
  readonly prompt?: string | undefined;
  /** What it says for a right answer. @default the word "yes" */
  readonly accepts?: RegExp | undefined;
  /** @default 64 */
  readonly maxTokens?: number | undefined;
}

const judgePrompt = `A question was: {question}

The right answer is: {wanted}

The given answer is: {answer}

Is that answer right? Say yes or no.`;

/** Right when another model accepts the answer. */
export function modelJudge(options: JudgeOptions): Grader {
  const {
    sampling,
    renderer,
    prompt = judgePrompt,
    accepts = /\byes\b/i,
    maxTokens = 64,
  } = options;
  return async ({ text }, example, signal) => {
    const parts: Record<string, string> = {
      question: textOf(example.messages.at(-1)!),
      wanted: wantedText(example),
      answer: text,
    };
    const content = prompt.replace(
      /\{(question|wanted|answer)\}/g,
      (_, name: string) => parts[name]!,
    );
    const { sequences } = await sampling.sample({
      prompt: renderer.buildGenerationPrompt([{ role: "user", content }]),
      samplingParams: { maxTokens, temperature: 0, stop: renderer.stopSequences },
      signal,
    });
    const said = textOf(renderer.parseResponse(sequences[0]!.tokens).message);
    return { ...verdict(accepts.test(said)), logs: { judge: said } };
  };
}

function verdict(isRight: boolean): Grade {
  return { reward: isRight ? 1 : 0 };
}

/** The wanted answer as text. */
export function wantedText({ answer }: EvalExample): string {
  if (typeof answer === "string") return answer;
  if (typeof answer === "number") return String(answer);
  if (Array.isArray(answer)) return textOf({ content: answer as never });
  throw new ArgumentError("answer", "an example has none to compare with");
}

function lastNumber(text: string): number | undefined {
  const found = text
    .replaceAll(/(?<=\d),(?=\d{3}\b)/g, "")
    .match(/-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi);
  return found ? Number(found.at(-1)) : undefined;
}
