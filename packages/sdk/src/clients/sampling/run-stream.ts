import type { IncrementalDecoder, Tokenizer } from "@tinker-ts/hub";
import {
  APIConnectionError,
  APIResponseValidationError,
  APIStatusError,
} from "../../errors/api-error.js";
import { RequestFailedError } from "../../errors/request-failed-error.js";
import type { Operation } from "../../futures/operation.js";
import { excerpt } from "../../transport/api.js";
import type { HttpResponse } from "../../transport/message.js";
import { readLines } from "../../transport/read-lines.js";
import { readTopLogprobs } from "../../types/sampling-extensions.js";
import type { SampleResponse, TokenLogprob } from "../../types/sampling.js";
import { decodeJson } from "../../wire/json-codec.js";
import { routes } from "../../wire/routes.js";
import { checkScores, type SampleCall, withExtras } from "./sample-call.js";
import type { SampledToken, TokenQueue } from "./sample-stream.js";
import type { Sampler } from "./sampler.js";

/** Statuses of servers without the endpoint. */
const cannotStream = new Set([404, 405, 501]);

/** Whether a server streams; asking each time would cost a request per sample. */
const streamSupport = (): { isMissing: boolean } => ({ isMissing: false });

/** A stream that is being made. */
export interface StreamRun {
  readonly sampler: Sampler;
  readonly call: SampleCall;
  readonly operation: Operation;
  readonly tokens: TokenQueue;
  /** The tokenizer for the texts; null without one. */
  readonly tokenizer: Promise<Tokenizer | null>;
}

/**
 * Samples and delivers tokens as they come, where the server can stream; elsewhere they all come at the
 * end. A stream that breaks is not restarted: tokens that were delivered cannot be taken back.
 */
export async function runStream(run: StreamRun): Promise<SampleResponse> {
  const { sampler, call, operation, tokens } = run;
  const { host } = sampler;
  const support = host.shared(streamSupport);
  const [response, tokenizer] = await Promise.all([
    support.isMissing ? undefined : open(run),
    run.tokenizer,
  ]);
  const texts = new TextDecoders(tokenizer);
  if (response) {
    tokens.isLive = true;
    const received = await receive(response, run, texts);
    return withExtras(checkScores(call, received, operation), tokenizer);
  }
  tokens.isLive = false;
  support.isMissing = true;
  host.runtime.logger.info("this server cannot stream; tokens come when all are sampled");
  const sampled = await sampler.sample(call, operation);
  const whole = withExtras(checkScores(call, sampled, operation), tokenizer);
  for (const [index, sequence] of whole.sequences.entries()) {
    sequence.tokens.forEach((token, position) => {
      const logprob = sequence.logprobs?.[position] ?? null;
      const top = (sequence.topLogprobs ?? sequence.topkLogprobs)?.[position] ?? undefined;
      tokens.push({ index, token, logprob, text: texts.push(index, token), ...namedTop(top) });
    });
  }
  return whole;
}

async function open({ sampler, call, operation }: StreamRun): Promise<HttpResponse | undefined> {
  try {
    return await sampler.openStream(call, operation);
  } catch (error) {
    if (error instanceof APIStatusError && cannotStream.has(error.status)) return undefined;
    throw error;
  }
}

async function receive(
  response: HttpResponse,
  { sampler, operation, tokens }: StreamRun,
  texts: TextDecoders,
): Promise<SampleResponse> {
  const { clock } = sampler.host.runtime;
  const openedAt = clock.now();
  operation.resumed();
  for await (const line of readLines(response.parts ?? [])) {
    const { index, token, logprob, top_logprobs: top, ...rest } = readLine(line, response);
    const { error, category, sequences } = rest;
    if (sequences !== undefined) {
      operation.spent("queueMs", openedAt);
      return decodeJson("SampleResponse", line, { isLenient: true });
    }
    if (error !== undefined) {
      const blamed = category === "user" || category === "server" ? category : "unknown";
      const words = typeof error === "string" ? error : JSON.stringify(error);
      throw new RequestFailedError(words, { requestId: "", category: blamed });
    }
    if (typeof index !== "number" || typeof token !== "number") throw notAStream(line, response);
    tokens.push({
      index,
      token,
      logprob: typeof logprob === "number" ? logprob : null,
      text: texts.push(index, token),
      ...namedTop(readTopLogprobs(top)),
    });
  }
  operation.signal.throwIfAborted();
  throw new APIConnectionError(
    "Connection error: the stream of tokens ended before the sample did.",
  );
}

function namedTop(topLogprobs: TokenLogprob[] | undefined): Pick<SampledToken, "topLogprobs"> {
  return topLogprobs ? { topLogprobs } : {};
}

function readLine(line: string, response: HttpResponse): Partial<Record<string, unknown>> {
  try {
    const json: unknown = JSON.parse(line);
    if (typeof json === "object" && json !== null) return json;
  } catch {
    // Reported below.
  }
  throw notAStream(line, response);
}

function notAStream(line: string, { status }: HttpResponse): APIResponseValidationError {
  return new APIResponseValidationError(
    `The answer of ${routes.streamSample.path} is not a stream of tokens. It begins: ${excerpt(line)}`,
    { status, body: line },
  );
}

/** One decoder per sample; a character that takes several tokens comes with its last. */
class TextDecoders {
  readonly #tokenizer: Tokenizer | null;
  readonly #decoders: IncrementalDecoder[] = [];

  constructor(tokenizer: Tokenizer | null) {
    this.#tokenizer = tokenizer;
  }

  push(index: number, token: number): string | null {
    if (!this.#tokenizer) return null;
    this.#decoders[index] ??= this.#tokenizer.incrementalDecoder({ skipSpecialTokens: true });
    return this.#decoders[index].push(token);
  }
}
