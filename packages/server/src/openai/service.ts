import { randomBytes, randomUUID } from "node:crypto";
import type { Principal } from "../auth/principal.js";
import type { Core } from "../core.js";
import type { ModelText } from "../engine-host/model-text.js";
import type { SampleTarget } from "../sampling/sample-target.js";
import type { ModelFacts } from "../engine-port/engine-kit.js";
import type { SampleOrder } from "../engine-port/engine-port.js";
import { jsonResponse, largeJsonResponse, toRefusal } from "../http/answers.js";
import { checkSamplePrice, priceOfSamples, type AnswerShape, type PricePart } from "../prices.js";
import { errorBody, invalid, OpenAiError } from "./openai-error.js";
import { eventStream, type EventWork } from "./answer/event-stream.js";
import type { OpenAiModels } from "./models.js";
import { ApiError, unavailable } from "../errors/api-error.js";
import { StoppedError } from "../errors/failure.js";
import type { Logger } from "../log/logger.js";
import type { SampleConstraint } from "@tinker-ts/engine";
import type { SamplingFields } from "./request/fields.js";

/** A request after authentication and parsing. */
export interface OpenAiCall {
  readonly caller: Principal;
  readonly signal: AbortSignal;
  readonly requestId: string;
  /** Called with work that continues after the response has started: until it ends, the body counts. */
  readonly streaming: (work: Promise<unknown>) => void;
}

/** A model that can be asked. */
export interface OpenModel {
  readonly name: string;
  readonly target: SampleTarget;
  readonly text: ModelText;
  readonly facts: ModelFacts;
}

/** Dependencies of all routes. */
export interface OpenAiParts {
  readonly core: Core;
  readonly models: OpenAiModels;
}

/** Finds a model by its name, with its tokenizer and template. */
export async function openModel(
  { core, models }: OpenAiParts,
  name: string,
  caller: Principal,
): Promise<OpenModel> {
  const target = models.resolve(name, caller);
  const [facts, text] = await Promise.all([
    core.bases.find(target.baseModel),
    core.bases.text(target.baseModel),
  ]);
  return { name, target, text, facts };
}

/** Head of a response: an id and the time in seconds. */
export function answerHead(
  { core }: OpenAiParts,
  prefix: string,
): { readonly id: string; readonly created: number } {
  const id = `${prefix}${randomBytes(12).toString("hex")}`;
  return { id, created: Math.floor(core.context.clock.now() / 1000) };
}

/** The same for every answer of this version: equal seeds give equal answers. */
export const systemFingerprint = "tinker-ts";

/** A complete response. */
export function wholeAnswer(call: OpenAiCall, json: object): Response {
  return jsonResponse(json, 200, { "x-request-id": call.requestId });
}

/** A whole answer of any size. */
export function largeAnswer(
  { core }: OpenAiParts,
  { caller, requestId }: OpenAiCall,
  json: object,
): Promise<Response> {
  const headers = { "x-request-id": requestId };
  return largeJsonResponse(core.context.loop, caller.owner, json, headers);
}

/** Refuses what would cost more than the limits; `fields` names the field of each part of the price. */
export function checkPrice(
  { core }: OpenAiParts,
  orders: readonly SampleOrder[],
  shape: AnswerShape,
  fields: Readonly<Record<PricePart, string>>,
): void {
  const price = priceOfSamples(orders, shape);
  checkSamplePrice(price, core.context.limits, (part, problem) => invalid(fields[part], problem));
}

/** An answer in events of the kind that ends with `[DONE]`. */
export function streamedAnswer(
  parts: OpenAiParts,
  call: OpenAiCall,
  work: EventWork,
): Promise<Response> {
  const { clock, limits, logger } = parts.core.context;
  return eventStream(work, {
    signal: call.signal,
    streaming: call.streaming,
    clock,
    pingMs: limits.streamPingMs,
    headers: { "x-request-id": call.requestId },
    renderError: (error) => toApiError(error, logger),
    errorEvent: (error, send) => send(errorBody(error)),
    lastLine: "data: [DONE]\n\n",
  });
}

/** A fresh id for a request. */
export function newRequestId(): string {
  return `req_${randomUUID()}`;
}

/** The part of an error that a client receives: its own mistakes in full, others with a reference to the log. */
export function toApiError(error: unknown, logger: Logger): ApiError {
  if (error instanceof StoppedError) return unavailable(error.message);
  const isFromEngine =
    error instanceof Error && (error.name === "EngineError" || error.name === "HubError");
  if (isFromEngine && "category" in error && error.category === "user") {
    return new OpenAiError(400, error.message, { code: "invalid_value" });
  }
  return toRefusal(error, logger);
}

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
