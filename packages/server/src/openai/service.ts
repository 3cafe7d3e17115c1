import { randomBytes, randomUUID } from "node:crypto";
import type { Principal } from "../auth/principal.js";
import type { Core } from "../core.js";
import type { ModelText } from "../engine-host/model-text.js";
import type { SampleTarget } from "../sampling/sample-target.js";
import type { ModelFacts } from "../engine-port/engine-kit.js";
import type { SampleOrder } from "../engine-port/engine-port.js";
import { jsonResponse, largeJsonResponse, tellable } from "../http/answers.js";
import { checkSamplePrice, priceOfSamples, type AnswerShape, type PricePart } from "../prices.js";
import { errorBody, invalid, OpenAiError } from "./openai-error.js";
import { eventStream, type EventWork } from "./answer/event-stream.js";
import type { OpenAiModels } from "./models.js";
import { ApiError, unavailable } from "../errors/api-error.js";
import { StoppedError } from "../errors/failure.js";
import type { Logger } from "../log/logger.js";

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
    tellError: (error) => toApiError(error, logger),
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
  return tellable(error, logger);
}
