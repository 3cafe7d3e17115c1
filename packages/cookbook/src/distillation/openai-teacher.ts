import { setTimeout as sleep } from "node:timers/promises";
import { retry } from "@tinker-ts/hub/retry";
import { ArgumentError, TinkerError, type ModelInput } from "tinker-ts";
import { textOf, type Message } from "../renderers/index.js";
import type { AnswerMessages } from "./prompt-distillation.js";
import type { AskOptions, Teacher } from "./teacher.js";

/** A server with OpenAI's routes. */
export interface OpenAIServerOptions {
  /** Where its routes begin, for instance `http://localhost:8000/v1`. */
  readonly baseUrl: string;
  /** The model's name there. */
  readonly model: string;
  /** The server's key. @default none */
  readonly apiKey?: string | undefined;
  /** Questions under way at once. @default 16 */
  readonly maxConcurrent?: number | undefined;
  /** Tries of a question that the server is too busy for. @default 5 */
  readonly maxTries?: number | undefined;
  /** Milliseconds until a question is given up. @default 120000 */
  readonly timeoutMs?: number | undefined;
}

/** What a server says of a place: token ids with their log-probabilities. */
type Place = Readonly<Record<string, { readonly logprob: number }>> | null;

/** A teacher behind `POST /v1/completions` with `prompt_logprobs`; prompts go as token ids, so nothing is tokenized twice. */
export function openAITeacher(options: OpenAIServerOptions): Teacher {
  const server = new OpenAIServer(options);
  return {
    async logprobs(sequence, ask) {
      const tokens = sequence.toInts();
      const places = await server.promptLogprobs(tokens, 1, ask);
      return places.map((place, index) => place?.[String(tokens[index])]?.logprob ?? null);
    },
    async topLogprobs(sequence, k, ask) {
      const places = await server.promptLogprobs(sequence.toInts(), k, ask);
      return places.map((place) => {
        if (!place) return null;
        const entries = Object.entries(place).map(
          ([token, { logprob }]) => [Number(token), logprob] as const,
        );
        // The token that stands there comes in addition where it is none of the best.
        return entries.toSorted((a, b) => b[1] - a[1]).slice(0, k);
      });
    },
  };
}

/** Answers of a server that are asked for in messages, behind `POST /v1/chat/completions`; any server will do. */
export function openAIAnswers(
  options: OpenAIServerOptions & {
    /** @default 0.15 */
    readonly temperature?: number | undefined;
    /** Most tokens of an answer. @default 1000 */
    readonly maxTokens?: number | undefined;
  },
): AnswerMessages {
  const { temperature = 0.15, maxTokens = 1000 } = options;
  const server = new OpenAIServer(options);
  return async (messages, { seed, signal }) => {
    const body = { messages: messages.map(toWire), temperature, max_tokens: maxTokens, seed };
    const { choices } = (await server.post("chat/completions", body, signal)) as {
      readonly choices?: readonly { readonly message?: { readonly content?: string | null } }[];
    };
    return choices?.[0]?.message?.content?.trim() ?? "";
  };
}

function toWire(message: Message): { role: string; content: string } {
  return { role: message.role, content: textOf(message) };
}

class OpenAIServer {
  readonly #options: OpenAIServerOptions;
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(options: OpenAIServerOptions) {
    if (!URL.canParse(options.baseUrl)) {
      throw new ArgumentError("baseUrl", `${options.baseUrl} is no address`);
    }
    this.#options = options;
    this.#free = options.maxConcurrent ?? 16;
  }

  async promptLogprobs(
    tokens: ReturnType<ModelInput["toInts"]>,
    k: number,
    { signal }: AskOptions = {},
  ): Promise<readonly Place[]> {
    const question = { prompt: [...tokens], max_tokens: 1, temperature: 0, prompt_logprobs: k };
    return placesOf(await this.post("completions", question, signal), tokens.length);
  }

  /** Asks when a place is free, and again when the server is too busy. */
  async post(route: string, body: object, signal: AbortSignal | undefined): Promise<unknown> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await this.#send(route, body, signal);
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }

  #send(route: string, body: object, signal: AbortSignal | undefined): Promise<unknown> {
    const { maxTries = 5 } = this.#options;
    return retry(
      () => this.#ask(route, body, signal),
      {
        shouldRetry: (error, failures) => error instanceof BusyError && failures + 1 < maxTries,
        delayFor: (error, failures) =>
          1000 * Math.min(30, (error as BusyError).retryAfterSeconds ?? 2 ** failures / 2),
      },
      { sleep: (delayMs) => sleep(delayMs, undefined, signal ? { signal } : {}), signal },
    );
  }

  async #ask(route: string, body: object, signal: AbortSignal | undefined): Promise<unknown> {
    signal?.throwIfAborted();
    const { baseUrl, model, apiKey, timeoutMs = 120_000 } = this.#options;
    const url = `${baseUrl.replace(/\/+$/, "")}/${route}`;
    const limit = AbortSignal.timeout(timeoutMs);
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      },
      body: JSON.stringify({ model, ...body }),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
    if (response.ok) return response.json();
    const said = `${url} answered ${response.status}: ${(await response.text()).slice(0, 500)}`;
    if (response.status !== 429 && response.status < 500) {
      throw new TinkerError(said, { code: "teacher_failed" });
    }
    throw new BusyError(said, response.headers.get("retry-after"));
  }
}

/** The server has too much to do or trouble of its own, which may pass. */
class BusyError extends TinkerError {
  override readonly name = "BusyError";
  /** How long it asks to wait; undefined when it does not say. */
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, retryAfter: string | null) {
    super(message, { code: "teacher_failed" });
    const seconds = Number(retryAfter ?? Number.NaN);
    if (seconds >= 0) this.retryAfterSeconds = seconds;
  }
}

function placesOf(body: unknown, count: number): readonly Place[] {
  const { choices, prompt_logprobs: outer } = body as {
    readonly choices?: readonly { readonly prompt_logprobs?: readonly Place[] }[];
    readonly prompt_logprobs?: readonly Place[];
  };
  const places = choices?.[0]?.prompt_logprobs ?? outer;
  if (places?.length === count) return places;
  throw new TinkerError(
    places
      ? `The teacher's server returned ${places.length} positions for a prompt of ${count} tokens.`
      : "The teacher's server returned no prompt_logprobs; it must support them (vLLM and tinker-ts serve do).",
    { code: "teacher_failed" },
  );
}
