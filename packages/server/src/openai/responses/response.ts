import type { SampleResult } from "@tinker-ts/engine";
import type { ChatChoice } from "../answer/chat-choice.js";
import { eventStream } from "../answer/event-stream.js";
import { LogprobWriter } from "../answer/logprobs.js";
import { prepareChat, runChat, type PreparedChat } from "../chat-completion.js";
import {
  answerHead,
  type OpenAiCall,
  type OpenAiParts,
  toApiError,
  wholeAnswer,
} from "../service.js";
import { errorBody } from "../openai-error.js";
import { readChatRequest } from "../request/chat-request.js";
import { Fields, type JsonObject } from "../request/fields.js";
import { OutputItems, type SendItemEvent } from "./output-items.js";
import { readResponsesRequest, type ResponsesRequest } from "./read-responses.js";
import type { RecentItems } from "./recent-items.js";

/** Answers a request of the responses API: a chat completion in the form of items. */
export async function response(
  parts: OpenAiParts,
  recent: RecentItems,
  fields: Fields,
  call: OpenAiCall,
): Promise<Response> {
  const asked = readResponsesRequest(fields, recent, call.caller.owner);
  const prepared = await prepareChat(parts, readChatRequest(new Fields(asked.chat)), call);
  parts.core.streams.checkRoom(call.caller.owner);
  const work = new ResponseWork(parts, recent, prepared, asked, call);
  if (!asked.stream) {
    return wholeAnswer(call, await work.run(call.signal, () => {}));
  }
  const { clock, limits, logger } = parts.core.context;
  let sequence = 0;
  return eventStream(
    async (send, signal) => {
      const sendEvent: SendItemEvent = (type, event) => {
        const name = `response.${type}`;
        send({ type: name, sequence_number: sequence++, ...event }, name);
      };
      await work.run(signal, sendEvent);
    },
    {
      signal: call.signal,
      streaming: call.streaming,
      clock,
      pingMs: limits.streamPingMs,
      headers: { "x-request-id": call.requestId },
      renderError: (error) => toApiError(error, logger),
      errorEvent: (error, send) => {
        const { message, code, param } = errorBody(error).error;
        send({ type: "error", sequence_number: sequence++, message, code, param }, "error");
      },
      lastLine: "",
    },
  );
}

/** One request in progress. */
class ResponseWork {
  readonly #parts: OpenAiParts;
  readonly #recent: RecentItems;
  readonly #prepared: PreparedChat;
  readonly #asked: ResponsesRequest;
  readonly #call: OpenAiCall;
  readonly #head: JsonObject;

  constructor(
    parts: OpenAiParts,
    recent: RecentItems,
    prepared: PreparedChat,
    asked: ResponsesRequest,
    call: OpenAiCall,
  ) {
    this.#parts = parts;
    this.#recent = recent;
    this.#prepared = prepared;
    this.#asked = asked;
    this.#call = call;
    const { id, created } = answerHead(parts, "resp_");
    this.#head = { id, object: "response", created_at: created };
  }

  /** Samples the answer, streams its events, and returns it complete. */
  async run(signal: AbortSignal, send: SendItemEvent): Promise<JsonObject> {
    const choice = this.#prepared.newChoice();
    const items = new OutputItems(send);
    const entries: object[] = [];
    const { request, model } = this.#prepared;
    const writer = new LogprobWriter(model.text.tokenizer, request.namesTokensById);
    let hasBegun = false;
    const begin = (): void => {
      if (hasBegun) return;
      hasBegun = true;
      const started = this.#object("in_progress", [], null);
      send("created", { response: started });
      send("in_progress", { response: started });
    };
    const result = await runChat(this.#parts, this.#prepared, this.#call, signal, (event) => {
      if (signal.aborted) return;
      begin();
      if (request.logprobs) entries.push(writer.chatEntry(event));
      for (const delta of choice.push(event.token)) items.push(delta);
    });
    begin();
    for (const delta of choice.finish()) items.push(delta);
    const isCut = result.samples[0]!.stopReason === "length";
    items.end(isCut ? "incomplete" : "completed");
    for (const item of items.items) this.#recent.add(this.#call.caller.owner, item);
    const output = items.items.map((item) => withLogprobs(item, entries));
    const status = isCut ? "incomplete" : "completed";
    const finished = this.#object(status, output, this.#usage(choice, result));
    send(status, { response: finished });
    return finished;
  }

  #object(status: string, output: readonly JsonObject[], usage: JsonObject | null): JsonObject {
    return {
      ...this.#head,
      status,
      error: null,
      incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
      model: this.#prepared.request.model,
      output,
      ...this.#asked.repeated,
      usage,
    };
  }

  #usage(choice: ChatChoice, result: SampleResult): JsonObject {
    const input = this.#prepared.order.prompt.length;
    return {
      input_tokens: input,
      input_tokens_details: { cached_tokens: result.promptCacheHitTokens },
      output_tokens: choice.tokens,
      output_tokens_details: { reasoning_tokens: choice.reasoningTokens },
      total_tokens: input + choice.tokens,
    };
  }
}

/** Adds the log-probabilities of all tokens to the text of an answer. */
function withLogprobs(item: JsonObject, entries: readonly object[]): JsonObject {
  if (entries.length === 0 || item["type"] !== "message") return item;
  const content = (item["content"] as readonly JsonObject[]).map((part) => ({
    ...part,
    logprobs: entries as unknown as readonly JsonObject[],
  }));
  return { ...item, content };
}
