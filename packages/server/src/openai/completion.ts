import type { SampleResult, TokenEvent } from "@tinker-ts/engine";
import type { Tokenizer } from "@tinker-ts/hub";
import type { SampleOrder } from "../engine-port/engine-port.js";
import { ChoiceText } from "./answer/choice-text.js";
import { bounded, LogprobWriter, type GeneratedToken } from "./answer/logprobs.js";
import { promptLogprobs } from "./answer/prompt-logprobs.js";
import { usageOf } from "./answer/usage.js";
import { toOrder } from "./order.js";
import { answerConstraint } from "./prompt/constraint.js";
import type { CompletionRequest } from "./request/completion-request.js";
import {
  answerHead,
  openModel,
  streamedAnswer,
  systemFingerprint,
  wholeAnswer,
  type OpenAiCall,
  type OpenAiParts,
  type OpenModel,
} from "./service.js";

interface Prepared {
  readonly request: CompletionRequest;
  readonly model: OpenModel;
  readonly orders: readonly SampleOrder[];
}

/** Answers a completion. */
export async function completion(
  parts: OpenAiParts,
  request: CompletionRequest,
  call: OpenAiCall,
): Promise<Response> {
  const model = await openModel(parts, request.model, call.caller);
  const { grammars } = parts.core.context;
  const constraint = await answerConstraint(grammars, call.caller.owner, model.text.tokenizer, {
    start: { format: { calls: "tagged", thinking: null }, startsThinking: false, mayThink: false },
    format: request.format,
    tools: { tools: [], choice: "none", isParallel: true },
  });
  // With `echo` the prompt's own log-probabilities are part of the answer.
  const echoed = request.echo && request.logprobs !== null ? request.logprobs : null;
  const prompts = await tokensOf(parts, request, model, call);
  const orders = prompts.map((prompt, index) =>
    toOrder(request, model.text, model.facts, {
      prompt,
      maxTokens: request.maxTokens,
      topLogprobs: request.logprobs ?? 0,
      promptLogprobs: request.promptLogprobs ?? echoed,
      constraint,
      param: request.prompts.length === 1 ? "prompt" : `prompt[${index}]`,
    }),
  );
  parts.core.streams.checkRoom(call.caller.owner);
  const prepared = { request, model, orders };
  return request.stream ? streamed(parts, prepared, call) : whole(parts, prepared, call);
}

/** The tokens of each prompt; prompts may be texts and tokens in turn. */
async function tokensOf(
  { core }: OpenAiParts,
  { prompts, addsSpecialTokens }: CompletionRequest,
  { text }: OpenModel,
  { caller }: OpenAiCall,
): Promise<Int32Array[]> {
  const texts = prompts.filter((prompt) => typeof prompt === "string");
  const encoded = await core.prompts.encode(caller.owner, text, texts, addsSpecialTokens);
  let next = 0;
  return prompts.map((prompt) =>
    typeof prompt === "string" ? encoded[next++]! : Int32Array.from(prompt),
  );
}

async function whole(parts: OpenAiParts, prepared: Prepared, call: OpenAiCall): Promise<Response> {
  const { request, model, orders } = prepared;
  const choices = newChoices(prepared);
  const results = await run(parts, prepared, call, call.signal, (index, token) => {
    choices[index]!.push(token);
  });
  return wholeAnswer(call, {
    ...answerHead(parts, "cmpl-"),
    object: "text_completion",
    model: request.model,
    choices: choices.map((choice, index) => {
      const result = results[Math.floor(index / request.n)]!;
      const order = orders[Math.floor(index / request.n)]!;
      choice.beginWith(result);
      choice.finish();
      return {
        index,
        ...choice.take(),
        finish_reason: result.samples[index % request.n]!.stopReason,
        stop_reason: choice.stopReason,
        ...(request.returnsTokenIds
          ? { prompt_token_ids: [...order.prompt], token_ids: choice.takeTokens() }
          : {}),
        ...(request.promptLogprobs === null
          ? {}
          : { prompt_logprobs: promptLogprobs(model.text.tokenizer, order.prompt, result) }),
      };
    }),
    usage: usage(prepared, choices, results),
    system_fingerprint: systemFingerprint,
  });
}

function streamed(parts: OpenAiParts, prepared: Prepared, call: OpenAiCall): Promise<Response> {
  const { request, orders } = prepared;
  return streamedAnswer(parts, call, async (send, signal) => {
    const head = {
      ...answerHead(parts, "cmpl-"),
      object: "text_completion",
      model: request.model,
      system_fingerprint: systemFingerprint,
    };
    const choices = newChoices(prepared);
    const sendChoice = (index: number, more: object = {}): void => {
      const choice = choices[index]!;
      const isFirst = !choice.hasBegun;
      choice.hasBegun = true;
      const order = orders[Math.floor(index / request.n)]!;
      const ids = request.returnsTokenIds
        ? {
            token_ids: choice.takeTokens(),
            ...(isFirst ? { prompt_token_ids: [...order.prompt] } : {}),
          }
        : {};
      const told = { index, ...choice.take(), finish_reason: null, ...ids, ...more };
      const counted = request.continuousUsage ? { usage: usage(prepared, choices, []) } : {};
      send({ ...head, choices: [told], ...counted });
    };
    // The prompt's log-probabilities are known at the end only, and everything else with them.
    const waits = request.echo && request.logprobs !== null;
    const results = await run(parts, prepared, call, signal, (index, token) => {
      if (signal.aborted) return;
      const choice = choices[index]!;
      if (!waits) choice.beginWith(null);
      choice.push(token);
      if (!waits && choice.hasText) sendChoice(index);
    });
    for (const [index, choice] of choices.entries()) {
      const result = results[Math.floor(index / request.n)]!;
      choice.beginWith(result);
      choice.finish();
      sendChoice(index, {
        finish_reason: result.samples[index % request.n]!.stopReason,
        stop_reason: choice.stopReason,
      });
    }
    if (!request.includesUsage) return;
    send({ ...head, choices: [], usage: usage(prepared, choices, results) });
  });
}

function run(
  { core }: OpenAiParts,
  { request, model, orders }: Prepared,
  { caller }: OpenAiCall,
  signal: AbortSignal,
  onToken: (choice: number, token: GeneratedToken) => void,
): Promise<readonly SampleResult[]> {
  return core.streams.run(caller, model.target, orders, {
    signal,
    route: "completions",
    onToken: (order, { sampleIndex, ...token }: TokenEvent) =>
      onToken(order * request.n + sampleIndex, token),
  });
}

function newChoices(prepared: Prepared): readonly CompletionChoice[] {
  const { request, orders } = prepared;
  return orders.flatMap(({ prompt }) =>
    Array.from({ length: request.n }, () => new CompletionChoice(prepared, prompt)),
  );
}

function usage(
  { orders }: Prepared,
  choices: readonly CompletionChoice[],
  results: readonly SampleResult[],
): object {
  return usageOf({
    prompt: orders.reduce((sum, { prompt }) => sum + prompt.length, 0),
    cached: results.reduce((sum, { promptCacheHitTokens }) => sum + promptCacheHitTokens, 0),
    completion: choices.reduce((sum, { tokens }) => sum + tokens, 0),
    reasoning: 0,
  });
}

interface LogprobLists {
  tokens: string[];
  token_logprobs: (number | null)[];
  top_logprobs: (Record<string, number> | null)[];
  text_offset: number[];
}

const noLists = (): LogprobLists => ({
  tokens: [],
  token_logprobs: [],
  top_logprobs: [],
  text_offset: [],
});

/** One continuation in progress. */
class CompletionChoice {
  hasBegun = false;
  readonly #request: CompletionRequest;
  readonly #prompt: Int32Array;
  readonly #tokenizer: Tokenizer;
  readonly #writer: LogprobWriter;
  readonly #text: ChoiceText;
  /** Decodes each token by itself, for its offset in the text. */
  readonly #places;
  #place = 0;
  #isEchoed = false;
  #pending = "";
  #lists = noLists();
  #tokens: number[] = [];
  #count = 0;

  constructor({ request, model }: Prepared, prompt: Int32Array) {
    const { tokenizer, ends } = model.text;
    this.#request = request;
    this.#prompt = prompt;
    this.#tokenizer = tokenizer;
    this.#writer = new LogprobWriter(tokenizer, request.namesTokensById);
    this.#text = new ChoiceText(tokenizer, { ...request, modelEnds: ends });
    this.#places = tokenizer.incrementalDecoder();
  }

  get stopReason(): string | number | null {
    return this.#text.stopReason;
  }

  get tokens(): number {
    return this.#count;
  }

  get hasText(): boolean {
    return this.#pending !== "";
  }

  /** Prepends the prompt for `echo`, with its log-probabilities if they are known. */
  beginWith(result: SampleResult | null): void {
    if (this.#isEchoed || !this.#request.echo) return;
    this.#isEchoed = true;
    const echoed = this.#tokenizer.decode(this.#prompt, { skipSpecialTokens: true });
    this.#pending = echoed + this.#pending;
    if (this.#request.logprobs === null) {
      this.#place += echoed.length;
      return;
    }
    const generated = this.#lists;
    const offset = this.#place;
    this.#lists = noLists();
    this.#place = 0;
    const decoder = this.#tokenizer.incrementalDecoder({ skipSpecialTokens: true });
    for (const [position, token] of this.#prompt.entries()) {
      const logprob = result?.promptLogprobs?.[position] ?? NaN;
      const top = result?.topkPromptLogprobs?.[position] ?? undefined;
      this.#note({ token, logprob, ...(top ? { top } : {}) }, position === 0);
      this.#place += decoder.push(token).length;
    }
    const shift = echoed.length;
    this.#lists.tokens.push(...generated.tokens);
    this.#lists.token_logprobs.push(...generated.token_logprobs);
    this.#lists.top_logprobs.push(...generated.top_logprobs);
    this.#lists.text_offset.push(...generated.text_offset.map((place) => place + shift));
    this.#place = offset + shift;
  }

  push(token: GeneratedToken): void {
    this.#count += 1;
    this.#tokens.push(token.token);
    if (this.#request.logprobs !== null) this.#note(token, false);
    this.#place += this.#places.push(token.token).length;
    this.#pending += this.#text.push(token.token);
  }

  finish(): void {
    this.#pending += this.#text.finish();
  }

  /** Text and log-probabilities that have not been sent yet. */
  take(): { readonly text: string; readonly logprobs: object | null } {
    const text = this.#pending;
    const lists = this.#lists;
    this.#pending = "";
    this.#lists = noLists();
    return { text, logprobs: this.#request.logprobs === null ? null : lists };
  }

  /** Tokens that have not been sent yet. */
  takeTokens(): readonly number[] {
    const tokens = this.#tokens;
    this.#tokens = [];
    return tokens;
  }

  #note(token: GeneratedToken, isFirst: boolean): void {
    this.#lists.tokens.push(this.#writer.nameOf(token.token));
    this.#lists.token_logprobs.push(isFirst ? null : bounded(token.logprob));
    this.#lists.top_logprobs.push(isFirst ? null : this.#writer.alternatives(token));
    this.#lists.text_offset.push(this.#place);
  }
}
