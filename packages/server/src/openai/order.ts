import { randomBytes } from "node:crypto";
import type { SampleConstraint } from "@tinker-ts/engine";
import type { ModelText } from "../engine-host/model-text.js";
import type { ModelFacts } from "../engine-port/engine-kit.js";
import type { SampleOrder } from "../engine-port/engine-port.js";
import { invalid } from "./openai-error.js";
import type { SamplingFields } from "./request/sampling-fields.js";

/** Options beyond the common fields. */
export interface OrderOptions {
  readonly prompt: Int32Array;
  /** null: as many as fit. */
  readonly maxTokens: number | null;
  readonly topLogprobs: number;
  /** Log-probabilities of the prompt, with so many alternatives; null for none. */
  readonly promptLogprobs: number | null;
  readonly constraint: SampleConstraint | undefined;
  /** Name of the prompt's field. */
  readonly param: string;
}

/** The engine's request; rejects options that this model does not support. */
export function toOrder(
  request: SamplingFields,
  { ends }: ModelText,
  facts: ModelFacts,
  options: OrderOptions,
): SampleOrder {
  const { prompt, promptLogprobs, constraint, param } = options;
  const { vocabSize, contextLength } = facts;
  const room = contextLength - prompt.length;
  if (room < (options.maxTokens === 0 ? 0 : 1)) {
    throw invalid(
      param,
      `the prompt has ${prompt.length} tokens, which leaves no room in the model's context of ${contextLength}`,
      "context_length_exceeded",
    );
  }
  const bad = prompt.findIndex((token) => token >= vocabSize);
  if (bad >= 0) {
    throw invalid(
      `${param}[${bad}]`,
      `token ${prompt[bad]} is not in the vocabulary of ${vocabSize}`,
    );
  }
  for (const token of request.logitBias.keys()) {
    checkToken(token, vocabSize, `logit_bias.${token}`);
  }
  for (const token of request.stopTokenIds) checkToken(token, vocabSize, "stop_token_ids");
  for (const token of request.logprobTokens) checkToken(token, vocabSize, "logprob_token_ids");
  return {
    prompt,
    numSamples: request.n,
    maxTokens: Math.min(options.maxTokens ?? room, room),
    temperature: request.topP === 0 ? 0 : request.temperature,
    topP: request.topP,
    topK: request.topK,
    seed: request.seed === null ? randomBytes(6).readUIntBE(0, 6) : toSeed(request.seed),
    stopTokens: [...new Set([...(request.ignoresEos ? [] : ends), ...request.stopTokenIds])],
    stopStrings: request.stop,
    promptLogprobs: promptLogprobs !== null,
    topkPromptLogprobs: promptLogprobs ?? 0,
    logprobsMode: request.logprobsMode,
    ...only("topLogprobs", options.topLogprobs, 0),
    ...only("minP", request.minP, 0),
    ...only("frequencyPenalty", request.frequencyPenalty, 0),
    ...only("presencePenalty", request.presencePenalty, 0),
    ...only("repetitionPenalty", request.repetitionPenalty, 1),
    ...only("minTokens", request.minTokens, 0),
    ...(request.logitBias.size === 0 ? {} : { logitBias: request.logitBias }),
    ...(request.logprobTokens.length === 0 ? {} : { logprobTokens: request.logprobTokens }),
    ...(constraint === undefined ? {} : { constraint }),
  };
}

/** The engine takes 53 bits; larger seeds are folded. */
function toSeed(seed: number): number {
  return Number(BigInt.asUintN(53, BigInt(seed)));
}

function only<K extends string>(
  name: K,
  value: number,
  usual: number,
): { readonly [name in K]?: number } {
  return value === usual ? {} : ({ [name]: value } as { [name in K]: number });
}

function checkToken(token: number, vocabSize: number, param: string): void {
  if (token < vocabSize) return;
  throw invalid(param, `token ${token} is not in the vocabulary of ${vocabSize}`);
}
