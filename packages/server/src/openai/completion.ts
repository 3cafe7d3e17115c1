import { setImmediate } from "node:timers/promises";
import type { SampleResult, TokenEvent } from "@tinker-ts/engine";
import type { Tokenizer } from "@tinker-ts/hub";
import type { WhenReady } from "../sampling/sample-requests.js";
import type { SampleOrder } from "../engine-port/engine-port.js";
import { ChoiceText } from "./answer/choice-text.js";
import { bounded, type GeneratedToken, LogprobWriter, promptLogprobs } from "./answer/logprobs.js";
import { usageOf } from "./answer/usage.js";
import {
  answerHead,
  checkPrice,
  largeAnswer,
  type OpenAiCall,
  type OpenAiParts,
  openModel,
  type OpenModel,
  streamedAnswer,
  systemFingerprint,
  toOrder,
} from "./service.js";
import { answerConstraint } from "./prompt/constraint.js";
import type { CompletionRequest } from "./request/completion-request.js";

interface Prepared {
  readonly request: CompletionRequest;
  readonly model: OpenModel;
  readonly orders: readonly SampleOrder[];
}

/** Choices of a stream that end before others have a turn. */
const choicesPerTurn = 8;

/** Answers a completion. */
export async function completion(
  parts: OpenAiParts,
  request: CompletionRequest,
  call: OpenAiCall,
): Promise<Response> {
  const model = await openModel(parts, request.model, call.caller);
  const { workers } = parts.core.context;
  const constraint = await answerConstraint(workers, call.caller.owner, model.text.tokenizer, {
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
  // A stream is not kept; with the log-probabilities of an echo it begins when everything is known.
  if (!request.stream || echoed !== null) {
    const prompt = request.echo ? "echo" : "prompt_logprobs";
    const fields = { samples: "n", tokens: "max_tokens", logprobs: "logprobs", prompt };
    const copies = request.echo || request.promptLogprobs !== null ? request.n : 1;
    checkPrice(parts, orders, { form: "completion", promptCopies: copies }, fields);
  }
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
  const encoded = await core.context.workers.tokens(caller.owner, text, texts, addsSpecialTokens);
  let next = 0;
  return prompts.map((prompt) =>
    typeof prompt === "string" ? encoded[next++]! : Int32Array.from(prompt),
  );
}

async function whole(parts: OpenAiParts, prepared: Prepared, call: OpenAiCall): Promise<Response> {
  const { request, orders } = prepared;
  const choices = await newChoices(parts, prepared, call);
  const results = await run(parts, prepared, call, call.signal, (index, token) => {
    choices[index]!.push(token);
  });
  const shown = await showPrompts(parts, prepared, call, results);
  return largeAnswer(parts, call, {
    ...answerHead(parts, "cmpl-"),
    object: "text_completion",
    model: request.model,
    choices: choices.map((choice, index) => {
      const result = results[Math.floor(index / request.n)]!;
      const order = orders[Math.floor(index / request.n)]!;
      const { echo, logprobs } = shown[Math.floor(index / request.n)]!;
      choice.beginWith(echo);
      choice.finish();
      return {
        index,
        ...choice.take(),
        finish_reason: result.samples[index % request.n]!.stopReason,
        stop_reason: choice.stopReason,
        ...(request.returnsTokenIds
          ? { prompt_token_ids: [...order.prompt], token_ids: choice.takeTokens() }
          : {}),
        ...(request.promptLogprobs === null ? {} : { prompt_logprobs: logprobs }),
      };
    }),
    usage: usage(prepared, choices, results),
    system_fingerprint: systemFingerprint,
  });
}

function streamed(parts: OpenAiParts, prepared: Prepared, call: OpenAiCall): Promise<Response> {
  const { request, orders } = prepared;
  return streamedAnswer(parts, call, async (send, signal, whenReady) => {
    const head = {
      ...answerHead(parts, "cmpl-"),
      object: "text_completion",
      model: request.model,
      system_fingerprint: systemFingerprint,
    };
    const choices = await newChoices(parts, prepared, call);
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
      const choiceBody = { index, ...choice.take(), finish_reason: null, ...ids, ...more };
      const counted = request.continuousUsage ? { usage: usage(prepared, choices, []) } : {};
      send({ ...head, choices: [choiceBody], ...counted });
    };
    // The prompt's log-probabilities are known at the end only, and everything else with them.
    const waits = request.echo && request.logprobs !== null;
    const echoes = waits ? [] : await showPrompts(parts, prepared, call, null);
    const onToken = (index: number, token: GeneratedToken): void => {
      if (signal.aborted) return;
      const choice = choices[index]!;
      if (!waits) choice.beginWith(echoes[Math.floor(index / request.n)]!.echo);
      choice.push(token);
      if (!waits && choice.hasText) sendChoice(index);
    };
    const results = await run(parts, prepared, call, signal, onToken, whenReady);
    const shown = waits ? await showPrompts(parts, prepared, call, results) : echoes;
    for (const [index, choice] of choices.entries()) {
      await whenReady();
      if (index % choicesPerTurn === 0) await setImmediate();
      const result = results[Math.floor(index / request.n)]!;
      choice.beginWith(shown[Math.floor(index / request.n)]!.echo);
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
  whenReady?: WhenReady,
): Promise<readonly SampleResult[]> {
  return core.streams.run(caller, model.target, orders, {
    signal,
    route: "completions",
    whenReady,
    onToken: (order, { sampleIndex, ...token }: TokenEvent) =>
      onToken(order * request.n + sampleIndex, token),
  });
}

function newChoices(
  { core }: OpenAiParts,
  prepared: Prepared,
  { caller }: OpenAiCall,
): Promise<readonly CompletionChoice[]> {
  const { request, orders } = prepared;
  return core.context.loop.run(
    caller.owner,
    (function* () {
      const choices: CompletionChoice[] = [];
      while (choices.length < orders.length * request.n) {
        choices.push(new CompletionChoice(prepared));
        yield;
      }
      return choices;
    })(),
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

/** A prompt in front of its continuations, with its log-probabilities where they are asked for. */
interface Echo {
  readonly text: string;
  readonly lists: LogprobLists | null;
}

function showPrompts(
  { core }: OpenAiParts,
  prepared: Prepared,
  { caller }: OpenAiCall,
  results: readonly SampleResult[] | null,
) {
  return core.context.loop.run(caller.owner, promptsOf(prepared, results));
}

/** What an answer shows of each prompt: made once, however many choices show it. */
function* promptsOf(
  { request, model, orders }: Prepared,
  results: readonly SampleResult[] | null,
): Generator<void, { echo: Echo | null; logprobs: unknown }[], void> {
  const { tokenizer } = model.text;
  const writer = new LogprobWriter(tokenizer, request.namesTokensById);
  const shown: { echo: Echo | null; logprobs: unknown }[] = [];
  for (const [index, { prompt }] of orders.entries()) {
    const result = results?.[index];
    const echo = request.echo ? yield* echoOf(request, tokenizer, writer, prompt, result) : null;
    const isScored = result !== undefined && request.promptLogprobs !== null;
    const logprobs = isScored ? yield* promptLogprobs(tokenizer, prompt, result) : null;
    shown.push({ echo, logprobs });
  }
  return shown;
}

function* echoOf(
  { logprobs }: CompletionRequest,
  tokenizer: Tokenizer,
  writer: LogprobWriter,
  prompt: Int32Array,
  result: SampleResult | undefined,
): Generator<void, Echo, void> {
  const lists = noLists();
  const decoder = tokenizer.incrementalDecoder({ skipSpecialTokens: true });
  let text = "";
  for (const [position, token] of prompt.entries()) {
    yield;
    if (logprobs !== null) {
      const logprob = result?.promptLogprobs?.[position] ?? NaN;
      const top = result?.topkPromptLogprobs?.[position] ?? undefined;
      const scored = { token, logprob, ...(top ? { top } : {}) };
      noteToken(lists, writer, scored, { place: text.length, isFirst: position === 0 });
    }
    text += decoder.push(token);
  }
  return { text: text + decoder.flush(), lists: logprobs === null ? null : lists };
}

function noteToken(
  lists: LogprobLists,
  writer: LogprobWriter,
  token: GeneratedToken,
  { place, isFirst }: { readonly place: number; readonly isFirst: boolean },
): void {
  lists.tokens.push(writer.nameOf(token.token));
  lists.token_logprobs.push(isFirst ? null : bounded(token.logprob));
  lists.top_logprobs.push(isFirst ? null : writer.alternatives(token));
  lists.text_offset.push(place);
}

/** One continuation in the making. */
class CompletionChoice {
  hasBegun = false;
  readonly #request: CompletionRequest;
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

  constructor({ request, model }: Prepared) {
    const { tokenizer, ends } = model.text;
    this.#request = request;
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

  /** Puts the prompt in front where it is to be echoed. */
  beginWith(echo: Echo | null): void {
    if (this.#isEchoed || echo === null) return;
    this.#isEchoed = true;
    this.#pending = echo.text + this.#pending;
    this.#place += echo.text.length;
    if (echo.lists === null) return;
    const {
      tokens,
      token_logprobs: logprobs,
      top_logprobs: tops,
      text_offset: places,
    } = this.#lists;
    this.#lists = {
      tokens: [...echo.lists.tokens, ...tokens],
      token_logprobs: [...echo.lists.token_logprobs, ...logprobs],
      top_logprobs: [...echo.lists.top_logprobs, ...tops],
      text_offset: [...echo.lists.text_offset, ...places.map((one) => one + echo.text.length)],
    };
  }

  push(token: GeneratedToken): void {
    this.#count += 1;
    if (this.#request.returnsTokenIds) this.#tokens.push(token.token);
    if (this.#request.logprobs !== null) {
      noteToken(this.#lists, this.#writer, token, { place: this.#place, isFirst: false });
    }
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
}
