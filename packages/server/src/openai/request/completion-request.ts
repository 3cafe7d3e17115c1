import { invalid, unsupported } from "../openai-error.js";
import { readModel, readResponseFormat, type ResponseFormat } from "./chat-request.js";
import {
  type Fields,
  type Json,
  readMaxTokens,
  readSampling,
  refuseUnsupported,
  type SamplingFields,
  toTokens,
} from "./fields.js";

/** A text to continue, or its tokens. */
export type PromptInput = string | readonly number[];

/** A request for continuations of texts. */
export interface CompletionRequest extends SamplingFields {
  readonly model: string;
  readonly prompts: readonly PromptInput[];
  readonly maxTokens: number;
  /** null: none; 0: of the sampled tokens alone. */
  readonly logprobs: number | null;
  readonly echo: boolean;
  readonly addsSpecialTokens: boolean;
  readonly format: ResponseFormat;
}

const maxPrompts = 1024;
const defaultMaxTokens = 16;

/** Reads the body of a completion. */
export function readCompletionRequest(fields: Fields): CompletionRequest {
  refuseUnsupported(fields);
  const sampling = readSampling(fields);
  const echo = fields.boolean("echo") ?? false;
  const bestOf = fields.integer("best_of", 1, Number.MAX_SAFE_INTEGER);
  if (bestOf !== undefined && bestOf !== sampling.n) {
    throw unsupported("best_of", "is not supported unless it equals n");
  }
  const format = readResponseFormat(fields);
  if (echo && format.type !== "text") {
    throw unsupported("echo", "is not supported together with response_format");
  }
  return {
    ...sampling,
    model: readModel(fields),
    prompts: readPrompts(fields),
    maxTokens: readMaxTokens(fields, ["max_tokens"], echo ? 0 : 1) ?? defaultMaxTokens,
    logprobs: fields.integer("logprobs", 0, 20) ?? null,
    echo,
    addsSpecialTokens: fields.boolean("add_special_tokens") ?? true,
    format,
  };
}

function readPrompts(fields: Fields): readonly PromptInput[] {
  const given = fields.get("prompt");
  if (given === undefined) throw invalid("prompt", "is missing");
  if (typeof given === "string") return [readPrompt(given, "prompt")];
  if (!Array.isArray(given)) {
    throw invalid("prompt", "must be a text, a list of tokens, or a list of these");
  }
  const list = given as readonly Json[];
  if (list.length === 0) throw invalid("prompt", "is empty");
  if (typeof list[0] === "number") return [readPrompt(list, "prompt")];
  if (list.length > maxPrompts) throw invalid("prompt", `has more than ${maxPrompts} prompts`);
  return list.map((prompt, index) => readPrompt(prompt, `prompt[${index}]`));
}

function readPrompt(given: Json, path: string): PromptInput {
  if (typeof given === "string") {
    if (given === "") throw invalid(path, "is empty");
    return given;
  }
  if (!Array.isArray(given)) throw invalid(path, "must be a text or a list of tokens");
  if (given.length === 0) throw invalid(path, "is empty");
  return toTokens(given, path);
}
