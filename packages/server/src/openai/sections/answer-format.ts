import type { CallFormat, ThinkingMarks } from "../../structure/answer-grammar.js";

/** A model's notation of thoughts and calls, inferred from its template. */
export interface AnswerFormat {
  readonly calls: CallFormat;
  readonly thinking: ThinkingMarks | null;
}

/** Infers the notation from a template; `hasToken` checks the vocabulary. */
export function answerFormat(template: string, hasToken: (token: string) => boolean): AnswerFormat {
  const has = (mark: string): boolean => template.includes(mark) || hasToken(mark);
  const thinking = has("<think>")
    ? { open: "<think>", close: "</think>" }
    : has("[THINK]")
      ? { open: "[THINK]", close: "[/THINK]" }
      : null;
  return { calls: callFormat(template, hasToken), thinking };
}

function callFormat(template: string, hasToken: (token: string) => boolean): CallFormat {
  if (template.includes("<tool_call>")) return "tagged";
  if (template.includes("[TOOL_CALLS]")) return "listed";
  if (template.includes("python_tag") || template.includes('"parameters"')) return "bare";
  if (hasToken("[TOOL_CALLS]")) return "listed";
  return hasToken("<|python_tag|>") ? "bare" : "tagged";
}
