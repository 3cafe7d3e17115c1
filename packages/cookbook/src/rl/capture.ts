import { ModelInput } from "tinker-ts";
import type { Trajectory, Transition } from "./types.js";

/** Requests of a program that go to OpenAI's routes, and what was sampled for them. */
export interface Capture {
  /** Put in place of `fetch` in the options of a client. */
  readonly fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
  /**
   * The turns since the last call as one episode, in the order of their requests, all with reward 0 but the
   * last, which gets `reward`; waits for streams that have not ended.
   */
  take(reward: number): Promise<Trajectory>;
}

/** How requests are captured. */
export interface CaptureOptions {
  /** Sends the requests. @default the global fetch */
  readonly fetch?: Capture["fetch"] | undefined;
}

/** An answer as far as it is needed, whole or as a part of a stream. */
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
 * Listens to what an agent framework samples at a server of this project, so that one can train on exactly
 * those tokens: every chat completion and completion becomes a turn. The program sees the same answers as
 * without, with tokens and log-probabilities in addition.
 */
export function captureRequests(options: CaptureOptions = {}): Capture {
  const send = options.fetch ?? ((input, init) => fetch(input, init));
  let turns: Promise<Transition | null>[] = [];
  return {
    async fetch(input, init) {
      const request = new Request(input, init);
      const { pathname } = new URL(request.url);
      const isChat = pathname.endsWith("/chat/completions");
      if (request.method !== "POST" || !(isChat || pathname.endsWith("/completions"))) {
        return send(request);
      }
      const body = (await request.json()) as Record<string, unknown>;
      if ((body["n"] ?? 1) !== 1) {
        throw new RangeError("n: only one answer per request can be captured as a turn");
      }
      const headers = new Headers(request.headers);
      headers.delete("content-length");
      const { method, signal, url } = request;
      const asked = JSON.stringify({ ...body, ...wanted(body, isChat) });
      const answer = send(new Request(url, { method, headers, signal, body: asked }));
      // Kept in the order of the requests, whenever their answers come.
      const turn = answer.then((response) => (response.ok ? turnOf(response.clone()) : null));
      turn.catch(() => {});
      turns.push(turn);
      return answer;
    },
    async take(reward) {
      const taken = turns;
      turns = [];
      const settled = await Promise.allSettled(taken);
      const transitions = settled.flatMap((one) => {
        // A request that failed or was given up is no turn.
        if (one.status === "rejected")
          return one.reason instanceof MissingTokens ? fail(one.reason) : [];
        return one.value ?? [];
      });
      const last = transitions.at(-1);
      if (last) transitions[transitions.length - 1] = { ...last, reward };
      return { transitions, stopReason: last?.action.stopReason ?? "completed" };
    },
  };
}

class MissingTokens extends Error {
  override readonly name = "MissingTokens";
}

function fail(error: Error): never {
  throw error;
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
  let stopReason = "completed";
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
    throw new MissingTokens("the server gave no token ids; captures need a tinker-ts server");
  }
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
