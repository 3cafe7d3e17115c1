import type { TextSource, Workers } from "../workers/workers.js";
import type { WhenReady } from "../sampling/sample-requests.js";
import type { SampleOrder } from "../engine-port/engine-port.js";
import type { ThinkingMarks } from "../structure/answer-grammar.js";
import { ChatChoice, type ChatDelta } from "./answer/chat-choice.js";
import { type GeneratedToken, LogprobWriter, promptLogprobs } from "./answer/logprobs.js";
import { usageOf } from "./answer/usage.js";
import { invalid, OpenAiError } from "./openai-error.js";
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
import type { ChatRequest } from "./request/chat-request.js";
import { answerFormat, type AnswerFormat } from "./sections/section-reader.js";
import type { SampleResult, TokenEvent } from "@tinker-ts/engine";
import type { ChatTemplate, Tokenizer } from "@tinker-ts/hub";

/** A conversation that is ready to be continued. */
export interface PreparedChat {
  readonly request: ChatRequest;
  readonly model: OpenModel;
  readonly prompt: ChatPrompt;
  readonly order: SampleOrder;
  /** One answer of the model, still empty. */
  readonly newChoice: () => ChatChoice;
}

/** Renders a conversation and prepares the engine's request. */
export async function prepareChat(
  parts: OpenAiParts,
  request: ChatRequest,
  { caller }: OpenAiCall,
): Promise<PreparedChat> {
  const model = await openModel(parts, request.model, caller);
  const { tokenizer, ends } = model.text;
  const template = await templateOf(tokenizer, request.model);
  const format = answerFormat(template.source, (token) => tokenizer.tokenToId(token) !== null);
  const { workers } = parts.core.context;
  const prompt = await chatPrompt(workers, caller.owner, model.text, request, format.thinking);
  const { startsThinking } = prompt;
  const constraint = await answerConstraint(workers, caller.owner, tokenizer, {
    start: { format, startsThinking, mayThink: mayThink(format, prompt) },
    format: request.format,
    tools: request,
  });
  const order = toOrder(request, model.text, model.facts, {
    prompt: prompt.tokens,
    maxTokens: request.maxTokens,
    topLogprobs: request.topLogprobs,
    promptLogprobs: request.promptLogprobs,
    constraint,
    param: "messages",
  });
  if (!request.stream) {
    const fields = {
      samples: "n",
      tokens: "max_tokens",
      logprobs: "top_logprobs",
      prompt: "prompt_logprobs",
    };
    checkPrice(parts, [order], { form: "chat", promptCopies: 1 }, fields);
  }
  const newChoice = (): ChatChoice =>
    new ChatChoice({
      tokenizer,
      ends: { ...request, modelEnds: ends },
      sections: {
        format,
        separatesReasoning: request.separatesReasoning,
        startsThinking: prompt.startsThinking,
        tools: request.choice === "none" ? [] : request.tools,
      },
      isParallel: request.isParallel,
      isNamed: typeof request.choice === "object",
    });
  return { request, model, prompt, order, newChoice };
}

/** Whether the model may begin with thoughts: not if the prompt has closed them. */
function mayThink({ thinking }: AnswerFormat, { text }: ChatPrompt): boolean {
  return thinking !== null && !text.trimEnd().endsWith(thinking.close);
}

/** Answers a chat completion. */
export async function chatCompletion(
  parts: OpenAiParts,
  request: ChatRequest,
  call: OpenAiCall,
): Promise<Response> {
  const prepared = await prepareChat(parts, request, call);
  parts.core.streams.checkRoom(call.caller.owner);
  return request.stream ? streamChat(parts, prepared, call) : wholeChat(parts, prepared, call);
}

async function wholeChat(
  parts: OpenAiParts,
  prepared: PreparedChat,
  call: OpenAiCall,
): Promise<Response> {
  const { request, model, prompt, order } = prepared;
  const choices = Array.from({ length: request.n }, () => new ChoiceRecord(prepared));
  const result = await runChat(parts, prepared, call, call.signal, ({ sampleIndex, ...token }) => {
    choices[sampleIndex]!.push(token);
  });
  for (const { choice } of choices) choice.finish();
  const { loop } = parts.core.context;
  const scores = promptLogprobs(model.text.tokenizer, order.prompt, result);
  const scored =
    request.promptLogprobs === null
      ? {}
      : { prompt_logprobs: await loop.run(call.caller.owner, scores) };
  return largeAnswer(parts, call, {
    ...answerHead(parts, "chatcmpl-"),
    object: "chat.completion",
    model: request.model,
    choices: choices.map(({ choice, takeLogprobs, takeTokens }, index) => ({
      index,
      message: choice.message(),
      logprobs: takeLogprobs(),
      finish_reason: choice.finishReason(result.samples[index]!.stopReason),
      stop_reason: choice.stopReason,
      ...(request.returnsTokenIds ? { token_ids: takeTokens() } : {}),
    })),
    usage: usage(prepared, choices, result.promptCacheHitTokens),
    system_fingerprint: systemFingerprint,
    ...(request.returnsTokenIds ? { prompt_token_ids: [...order.prompt] } : {}),
    ...(request.returnsPromptText ? { prompt_text: prompt.text } : {}),
    ...scored,
  });
}

function streamChat(
  parts: OpenAiParts,
  prepared: PreparedChat,
  call: OpenAiCall,
): Promise<Response> {
  const { request, order } = prepared;
  return streamedAnswer(parts, call, async (send, signal, whenReady) => {
    const head = {
      ...answerHead(parts, "chatcmpl-"),
      object: "chat.completion.chunk",
      model: request.model,
      system_fingerprint: systemFingerprint,
    };
    const choices = Array.from({ length: request.n }, () => new ChoiceRecord(prepared));
    const sendChoice = (index: number, delta: object, more: object = {}): void => {
      const { takeLogprobs, takeTokens } = choices[index]!;
      const choice = {
        index,
        delta,
        logprobs: takeLogprobs(),
        finish_reason: null,
        ...(request.returnsTokenIds ? { token_ids: takeTokens() } : {}),
        ...more,
      };
      const counted = request.continuousUsage ? { usage: usage(prepared, choices, 0) } : {};
      send({ ...head, choices: [choice], ...counted });
    };
    const sendRole = (index: number): void => {
      if (choices[index]!.hasBegun) return;
      choices[index]!.hasBegun = true;
      const ids = request.returnsTokenIds ? { prompt_token_ids: [...order.prompt] } : {};
      const delta = { role: "assistant", content: "" };
      const choice = { index, delta, logprobs: null, finish_reason: null };
      send({ ...head, choices: [choice], ...ids });
    };
    const sendDeltas = (index: number, deltas: readonly ChatDelta[]): void => {
      for (const delta of deltas) sendChoice(index, toWire(delta));
    };
    const onToken = ({ sampleIndex: index, ...token }: TokenEvent): void => {
      if (signal.aborted) return;
      sendRole(index);
      sendDeltas(index, choices[index]!.push(token));
    };
    const result = await runChat(parts, prepared, call, signal, onToken, whenReady);
    for (const [index, { choice }] of choices.entries()) {
      sendRole(index);
      sendDeltas(index, choice.finish());
      sendChoice(
        index,
        {},
        {
          finish_reason: choice.finishReason(result.samples[index]!.stopReason),
          stop_reason: choice.stopReason,
        },
      );
    }
    if (!request.includesUsage) return;
    send({ ...head, choices: [], usage: usage(prepared, choices, result.promptCacheHitTokens) });
  });
}

/** Runs a prepared conversation in the engine. */
export async function runChat(
  { core }: OpenAiParts,
  { model, order }: PreparedChat,
  { caller }: OpenAiCall,
  signal: AbortSignal,
  onToken: (event: TokenEvent) => void,
  whenReady?: WhenReady,
): Promise<SampleResult> {
  const [result] = await core.streams.run(caller, model.target, [order], {
    signal,
    route: "chat",
    onToken: (_, event) => onToken(event),
    whenReady,
  });
  return result!;
}

function usage(prepared: PreparedChat, choices: readonly ChoiceRecord[], cached: number): object {
  const sum = (count: (record: ChoiceRecord) => number): number =>
    choices.reduce((total, record) => total + count(record), 0);
  return usageOf({
    prompt: prepared.order.prompt.length,
    cached,
    completion: sum(({ choice }) => choice.tokens),
    reasoning: sum(({ choice }) => choice.reasoningTokens),
  });
}

function toWire(delta: ChatDelta): object {
  switch (delta.kind) {
    case "content":
      return { content: delta.text };
    case "reasoning":
      return { reasoning_content: delta.text };
    case "call":
      return { tool_calls: [delta.call] };
  }
}

/** A choice with its tokens for log-probabilities. */
class ChoiceRecord {
  readonly choice: ChatChoice;
  hasBegun = false;
  readonly #wantsLogprobs: boolean;
  readonly #keepsTokens: boolean;
  readonly #writer: LogprobWriter;
  #tokens: number[] = [];
  #entries: object[] = [];

  constructor({ request, model, newChoice }: PreparedChat) {
    this.choice = newChoice();
    this.#wantsLogprobs = request.logprobs;
    this.#keepsTokens = request.returnsTokenIds;
    this.#writer = new LogprobWriter(model.text.tokenizer, request.namesTokensById);
  }

  push(token: GeneratedToken): readonly ChatDelta[] {
    if (this.#keepsTokens) this.#tokens.push(token.token);
    if (this.#wantsLogprobs) this.#entries.push(this.#writer.chatEntry(token));
    return this.choice.push(token.token);
  }

  /** Tokens that have not been sent yet. */
  readonly takeTokens = (): readonly number[] => {
    const tokens = this.#tokens;
    this.#tokens = [];
    return tokens;
  };

  /** Log-probabilities that have not been sent yet. */
  readonly takeLogprobs = (): object | null => {
    if (!this.#wantsLogprobs) return null;
    const content = this.#entries;
    this.#entries = [];
    return { content, refusal: null };
  };
}

/** A conversation as a prompt. */
interface ChatPrompt {
  readonly tokens: Int32Array;
  readonly text: string;
  /** Whether it ends inside the model's thoughts. */
  readonly startsThinking: boolean;
}

/** Renders the messages of a request with the model's own template. */
async function chatPrompt(
  workers: Workers,
  owner: string,
  text: TextSource,
  request: ChatRequest,
  marks: ThinkingMarks | null,
): Promise<ChatPrompt> {
  const { messages, tools, choice, variables, continuesFinalMessage } = request;
  const isOffered = tools.length > 0 && choice !== "none";
  const options = {
    addGenerationPrompt: request.addsGenerationPrompt,
    variables,
    ...(isOffered ? { tools: tools.map(({ json }) => json) } : {}),
  };
  const chat = { messages, options, continuesFinalMessage };
  const encoded = await workers.chat(owner, text, chat);
  if ("problem" in encoded) throw invalid(encoded.field, encoded.problem);
  return { ...encoded, startsThinking: endsInThoughts(encoded.text, request, marks) };
}

/** The model's chat template; a model without one is rejected. */
async function templateOf(tokenizer: Tokenizer, model: string): Promise<ChatTemplate> {
  if (tokenizer.chatTemplates.size > 0) return tokenizer.chatTemplate();
  throw new OpenAiError(
    400,
    `the model ${model} has no chat template; write the prompt yourself and call /v1/completions`,
    { param: "model", code: "invalid_value" },
  );
}

function endsInThoughts(text: string, request: ChatRequest, marks: ThinkingMarks | null): boolean {
  if (marks === null) return false;
  if (!request.continuesFinalMessage) return text.trimEnd().endsWith(marks.open);
  const last = text.slice(-String(request.messages.at(-1)?.content).length - marks.open.length - 2);
  return last.lastIndexOf(marks.open) > last.lastIndexOf(marks.close);
}
