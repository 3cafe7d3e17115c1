import { ApiFailure, send } from "./api.js";

// Answers of the playground use the routes of OpenAI's clients, so that the playground shows what a
// program gets; log-probabilities are those of the very generation that is shown.

/** Parameters of a request. */
export interface CompletionOptions {
  /** A base model's name or a checkpoint's path. */
  readonly model: string;
  /** A conversation, or text to continue. */
  readonly input: { readonly messages: readonly ChatMessage[] } | { readonly prompt: string };
  readonly temperature: number;
  readonly maxTokens: number;
  readonly seed: number | null;
  readonly samples: number;
  readonly stop: readonly string[];
}

/** A turn of a conversation. */
export interface ChatMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** A token of an answer with its alternatives. */
export interface AnswerToken {
  readonly text: string;
  readonly id: number | null;
  readonly logprob: number;
  readonly top: readonly { readonly text: string; readonly logprob: number }[];
}

/** A chunk of a streamed answer. */
export interface AnswerPart {
  readonly index: number;
  readonly text: string;
  /** The part of the answer that the text belongs to. */
  readonly kind: "thinking" | "answer";
  readonly tokens: readonly AnswerToken[];
  readonly finish: string | null;
  /** The weights, as reported by the server. */
  readonly model: string;
  /** The prompt as the model read it; with the first piece. */
  readonly promptTokens?: readonly number[];
}

interface Chunk {
  readonly model: string;
  readonly prompt_token_ids?: readonly number[];
  readonly error?: { readonly message: string };
  readonly choices: readonly {
    readonly index: number;
    readonly text?: string;
    readonly delta?: { readonly content?: string; readonly reasoning_content?: string };
    readonly finish_reason: string | null;
    readonly token_ids?: readonly number[];
    readonly prompt_token_ids?: readonly number[];
    readonly logprobs?: ChatLogprobs | TextLogprobs | null;
  }[];
}

interface NamedToken {
  readonly token: string;
  readonly logprob: number;
}

interface ChatLogprobs {
  readonly content: readonly (NamedToken & { readonly top_logprobs: readonly NamedToken[] })[];
}

interface TextLogprobs {
  readonly tokens: readonly string[];
  readonly token_logprobs: readonly (number | null)[];
  readonly top_logprobs?: readonly (Readonly<Record<string, number>> | null)[];
}

/** The state of reasoning after a model's prompt; null if the model is free to choose, or has no chat template. */
export async function thinkingOf(
  model: string,
  abort: AbortSignal,
): Promise<"inside" | "behind" | null> {
  const response = await send("POST", "/v1/chat/completions/input_tokens", {
    body: { model, messages: [{ role: "user", content: "Hi" }] },
    signal: abort,
  });
  const { thinking } = (await response.json()) as { readonly thinking?: unknown };
  return thinking === "inside" || thinking === "behind" ? thinking : null;
}

const alternatives = 5;

/** Requests answers and yields their chunks as they come; `abort` ends generation on the server too. */
export async function complete(
  options: CompletionOptions,
  onPart: (part: AnswerPart) => void,
  abort: AbortSignal,
): Promise<void> {
  const isChat = "messages" in options.input;
  const response = await send("POST", isChat ? "/v1/chat/completions" : "/v1/completions", {
    body: {
      model: options.model,
      ...options.input,
      temperature: options.temperature,
      max_tokens: options.maxTokens,
      n: options.samples,
      stream: true,
      return_token_ids: true,
      ...(isChat ? { logprobs: true, top_logprobs: alternatives } : { logprobs: alternatives }),
      ...(options.seed === null ? {} : { seed: options.seed }),
      ...(options.stop.length > 0 ? { stop: options.stop } : {}),
    },
    signal: abort,
  });
  for await (const data of eventsOf(response.body!)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error)
      throw new ApiFailure(chunk.error.message, { status: 500, target: options.model });
    for (const {
      index,
      text,
      delta,
      finish_reason: finish,
      logprobs,
      token_ids: ids = [],
      prompt_token_ids: prompt = chunk.prompt_token_ids,
    } of chunk.choices) {
      onPart({
        index,
        text: text ?? (delta?.reasoning_content ?? "") + (delta?.content ?? ""),
        kind: delta?.reasoning_content && !delta.content ? "thinking" : "answer",
        tokens: tokensOf(logprobs ?? null, ids),
        finish,
        model: chunk.model,
        ...(prompt ? { promptTokens: prompt } : {}),
      });
    }
  }
}

/** Whether an error means that the model has no chat template. */
export function lacksTemplate(error: unknown): boolean {
  return (
    error instanceof ApiFailure && error.status === 400 && /chat template/i.test(error.message)
  );
}

function tokensOf(
  logprobs: ChatLogprobs | TextLogprobs | null,
  ids: readonly number[],
): readonly AnswerToken[] {
  if (!logprobs) return [];
  if ("content" in logprobs) {
    return logprobs.content.map(({ token, logprob, top_logprobs: top }, place) => ({
      text: token,
      id: ids[place] ?? null,
      logprob,
      top: top.map((one) => ({ text: one.token, logprob: one.logprob })),
    }));
  }
  return logprobs.tokens.map((text, place) => ({
    text,
    id: ids[place] ?? null,
    logprob: logprobs.token_logprobs[place] ?? 0,
    top: Object.entries(logprobs.top_logprobs?.[place] ?? {})
      .map(([name, logprob]) => ({ text: name, logprob }))
      .toSorted((one, other) => other.logprob - one.logprob),
  }));
}

async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = blocks.pop()!;
      for (const block of blocks) if (block.startsWith("data: ")) yield block.slice(6);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
