import { ArgumentError, ModelInput, TinkerError } from "tinker-ts";
import type { Trajectory, Transition } from "./types.js";

/** Captured requests to OpenAI's routes, with the sampled tokens. */
export interface Capture {
  /** Replaces `fetch` in the options of a client. */
  readonly fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
  /**
   * Returns the turns since the last call as one episode, in the order of their requests. The last turn gets `reward`, the
   * others 0. Waits for open streams. Throws a `CaptureError` when the last request failed, a stream broke off, or there was
   * none.
   */
  take(reward: number): Promise<Trajectory>;
}

/** Options of `captureRequests`. */
export interface CaptureOptions {
  /** Sends the requests. @default the global fetch */
  readonly fetch?: Capture["fetch"] | undefined;
}

/** The used fields of an answer, whole or as an event of a stream. */
interface Answer {
  readonly prompt_token_ids?: readonly number[];
  readonly choices?: readonly {
    readonly prompt_token_ids?: readonly number[];
    readonly token_ids?: readonly number[];
    readonly finish_reason?: string | null;
    readonly logprobs?: {
      readonly content?: readonly { readonly logprob: number }[] | null;
      readonly token_logprobs?: readonly number[];
    } | null;
  }[];
}

/**
 * Captures the tokens that an agent framework samples from a server of this project, to train on exactly those tokens:
 * every chat completion and completion becomes a turn. The program receives the same answers, with tokens and
 * log-probabilities in addition.
 */
export function captureRequests(options: CaptureOptions = {}): Capture {
  const send = options.fetch ?? ((input, init) => fetch(input, init));
  let turns: Promise<Transition>[] = [];
  return {
    async fetch(input, init) {
      const request = new Request(input, init);
      const { pathname } = new URL(request.url);
      const isChat = pathname.endsWith("/chat/completions");
      if (request.method === "POST" && pathname.endsWith("/responses")) {
        throw new ArgumentError(
          "fetch",
          "/v1/responses cannot be captured; use chat completions (useResponses or a similar option of the framework)",
        );
      }
      if (request.method !== "POST" || !(isChat || pathname.endsWith("/completions"))) {
        return send(request);
      }
      const body = (await request.json()) as Record<string, unknown>;
      if ((body["n"] ?? 1) !== 1) {
        throw new ArgumentError("n", "must be 1: only one answer per request can be captured");
      }
      const headers = new Headers(request.headers);
      headers.delete("content-length");
      const { method, signal, url } = request;
      const asked = JSON.stringify({ ...body, ...wanted(body, isChat) });
      const answer = send(new Request(url, { method, headers, signal, body: asked }));
      // In the order of the requests, whatever the order of the answers.
      const turn = answer.then((response) => {
        if (response.ok) return turnOf(response.clone());
        throw new Error(`the server answered with status ${response.status}`);
      });
      turn.catch(() => {});
      turns.push(turn);
      return answer;
    },
    async take(reward) {
      const taken = turns;
      turns = [];
      const settled = await Promise.allSettled(taken);
      // A failed request that the program repeated is no part of the episode; a lost answer always is.
      const failed = settled.find(
        (one, at) =>
          one.status === "rejected" &&
          (one.reason instanceof CaptureError || at === settled.length - 1),
      );
      if (failed?.status === "rejected") throw asCaptureError(failed.reason);
      const transitions = settled.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
      const last = transitions.at(-1);
      if (!last) throw new CaptureError("no request was captured");
      transitions[transitions.length - 1] = { ...last, reward };
      return { transitions, stopReason: last.action.stopReason };
    },
  };
}

/** An episode that is not complete: a request failed, a stream broke off, or the server sent no tokens. */
export class CaptureError extends TinkerError {
  override readonly name = "CaptureError";
  readonly blamesUser = true;

  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super(`The episode is incomplete: ${message}.`, { ...options, code: "capture" });
  }
}

function asCaptureError(reason: unknown): CaptureError {
  if (reason instanceof CaptureError) return reason;
  const text = reason instanceof Error ? reason.message : String(reason);
  return new CaptureError(`a request failed: ${text}`, { cause: reason });
}

function wanted(body: Readonly<Record<string, unknown>>, isChat: boolean): object {
  const common = { return_token_ids: true, logprobs_mode: "processed" };
  return { ...common, logprobs: isChat ? true : (body["logprobs"] ?? 0) };
}

async function turnOf(response: Response): Promise<Transition> {
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  const text = await response.text();
  const answers = isStream ? eventsOf(text) : [JSON.parse(text) as Answer];
  const prompt: number[] = [];
  const tokens: number[] = [];
  const logprobs: number[] = [];
  let stopReason: string | undefined;
  for (const { prompt_token_ids: ids = [], choices = [] } of answers) {
    prompt.push(...ids);
    const [choice] = choices;
    prompt.push(...(choice?.prompt_token_ids ?? []));
    tokens.push(...(choice?.token_ids ?? []));
    const { content, token_logprobs: values } = choice?.logprobs ?? {};
    logprobs.push(...(values ?? content?.map(({ logprob }) => logprob) ?? []));
    stopReason = choice?.finish_reason ?? stopReason;
  }
  if (prompt.length === 0 || logprobs.length !== tokens.length) {
    throw new CaptureError("the server sent no token ids; capturing needs a tinker-ts server");
  }
  if (stopReason === undefined) throw new CaptureError("a stream ended before the answer did");
  return {
    observation: ModelInput.from(prompt),
    action: { tokens: Int32Array.from(tokens), logprobs: Float32Array.from(logprobs), stopReason },
    reward: 0,
    metrics: {},
    logs: {},
    masked: false,
  };
}

function eventsOf(text: string): Answer[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice("data: ".length)) as Answer);
}
