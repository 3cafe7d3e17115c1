import type { SampleOrder } from "./engine-port/engine-port.js";
import { ApiError } from "./errors/api-error.js";

/*
 * Every request has a price before its work, and every price a limit: bytes to receive, tokens to compute, bytes to
 * hold and to answer, rows to read. What is beyond a limit is refused by the field that makes it so. What is within
 * takes turns at the scheduler, and owners who have spent more wait longer.
 */

const mebibyte = 1024 * 1024;
const minute = 60_000;
const hour = 60 * minute;

/** Every bound the server keeps, with its default; all of them can be set. */
export const defaultLimits = {
  /** Largest request body as sent. */
  maxBodyBytes: 128 * mebibyte,
  /** Largest request body after decompression. */
  maxDecompressedBytes: 256 * mebibyte,
  /** Bodies under way at the same time; one owner gets at most half of what others leave. */
  maxBodiesBytes: 512 * mebibyte,
  /** A body that comes more slowly than this is given up. */
  minBodyBytesPerSecond: 16 * 1024,
  /** Longest time a body may take to arrive. */
  bodyTimeoutMs: 5 * minute,
  /** Largest adapter that can be brought in, as sent and unpacked. */
  maxImportBytes: 4096 * mebibyte,
  /** Most data in one forward or forward/backward request. */
  maxBatchData: 4096,
  /** Longest prompt that is taken, whatever the context of its model. */
  maxPromptTokens: 262_144,
  /** Most sequences of one sample request. */
  maxNumSamples: 1024,
  /** How far ahead of its turn a training request may be accepted. */
  maxPendingPerModel: 1024,
  /** Bytes of accepted and unfinished training requests per model. */
  maxPendingBytesPerModel: 1024 * mebibyte,
  /** Accepted and unfinished sample requests of one owner; beyond it 429. */
  maxPendingSamples: 8192,
  /** Most tokens of one sample request: those of its prompts, and all that it may sample. */
  maxRequestTokens: 2 ** 26,
  /** Largest answer to a sample request, as its fields allow it to become. */
  maxAnswerBytes: 64 * mebibyte,
  /** Sequences of one turn at sampling; a request of more takes several turns. */
  maxTurnSequences: 64,
  /** Sequences in the engine at the same time; one owner gets half of what others leave. */
  maxRunningSequences: 128,
  /** Samples answered on their connection at the same time; one owner gets half of what others leave. */
  maxStreams: 128,
  /** Such samples that wait for their turn; beyond it 429. */
  maxWaitingStreams: 4096,
  /** A stream that has nothing to say says so this often. */
  streamPingMs: 15_000,
  /** Open sessions of one owner. */
  maxSessions: 4096,
  /** Polls that may wait at the same time; one owner gets at most half of what others leave. */
  maxWaitingPolls: 20_000,
  /** Longest time a poll waits before it is answered and has to ask again. */
  longPollMs: 20_000,
  /** Results above this size are announced first where the client allows it. */
  inlineResultBytes: mebibyte,
  /** A session without a sign of life for this long is closed. */
  sessionTimeoutMs: 5 * minute,
  /** How long a result stays after it was first fetched. */
  fetchedGraceMs: 10 * minute,
  /** How long an unfetched result stays. */
  resultTtlMs: 24 * hour,
  /** Results kept altogether; the oldest of the owner with the most go first. */
  maxResultBytes: 2048 * mebibyte,
  /** How long it stays known when a finished request ran. */
  requestRecordTtlMs: 7 * 24 * hour,
  /** Finished requests that stay known; the oldest go first. */
  maxRequestRecords: 500_000,
  /** How long usage, the audit log, ended runs and deleted checkpoints stay on record. */
  recordTtlMs: 90 * 24 * hour,
  /** Sampler weights made for one sampling session go when unused for this long. */
  ephemeralTtlMs: 6 * hour,
  /** Such weights altogether; the longest unused of the owner with the most go first. */
  maxEphemeralBytes: 8192 * mebibyte,
  /** Adapters kept in memory; the longest unused are put on disk. */
  maxLiveModels: 64,
  /** Sampler weights kept in memory; the longest unused are dropped. */
  maxLoadedSamplers: 64,
  /** Journal of one model at which its state is written out. */
  maxJournalBytes: 256 * mebibyte,
  /** Longest work that a restart may have to repeat per model, as a multiple of writing its state. */
  maxReplayRatio: 20,
  /** Curves kept altogether; those of the longest untouched runs of the owner with the most go first. */
  maxSeriesBytes: 1024 * mebibyte,
  /** Data, rollouts and samples kept to be looked at; the oldest of the owner with the most go first. */
  maxExhibitBytes: 2048 * mebibyte,
  /** Text lines of one owner's runs; the oldest of its longest untouched runs go first. */
  maxLogLineBytes: 256 * mebibyte,
  /** Logged runs of one owner; the longest untouched that are not pinned go, twice as many are refused. */
  maxRuns: 20_000,
  /** Named checkpoints of one owner; beyond it saves fail until some are deleted. */
  maxCheckpoints: 10_000,
  /** Bytes of those. */
  maxCheckpointBytes: 1024 * 1024 * mebibyte,
  /** How long each part of shutting down waits for what is running; there are three. */
  shutdownGraceMs: 30_000,
};

/** Bounds of a server, by name. */
export type ServerLimits = Readonly<typeof defaultLimits>;

/** Fills defaults in; refuses a limit that is unknown or not a positive number, by its name. */
export function resolveLimits(given: Partial<ServerLimits> = {}): ServerLimits {
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(defaultLimits, name)) {
      throw new RangeError(
        `limits.${name}: there is no such limit; known are ${Object.keys(defaultLimits).join(", ")}`,
      );
    }
    if (value !== undefined && !(Number.isFinite(value) && value > 0)) {
      throw new RangeError(`limits.${name}: must be a positive number, got ${String(value)}`);
    }
  }
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  const limits = { ...defaultLimits, ...Object.fromEntries(set) };
  // An owner's share must have room for one body, as it comes and as it is kept.
  const leastBytes = 2 * Math.max(limits.maxBodyBytes, limits.maxDecompressedBytes);
  if (limits.maxBodiesBytes >= leastBytes) return limits;
  throw new RangeError(
    `limits.maxBodiesBytes: must be at least twice maxBodyBytes and maxDecompressedBytes, ${leastBytes}; got ${limits.maxBodiesBytes}`,
  );
}

/** Bytes of a sampled token and of each alternative to it in the forms of answers. */
export const answerForms = {
  tinker: { token: 8, alternative: 12 },
  completion: { token: 48, alternative: 40 },
  chat: { token: 96, alternative: 96 },
} as const satisfies Record<string, { readonly token: number; readonly alternative: number }>;

/** What a part of a price comes from. */
export type PricePart = "samples" | "tokens" | "logprobs" | "prompt";

/** How an answer shows what was sampled. */
export interface AnswerShape {
  readonly form: keyof typeof answerForms;
  /** Number of times that the answer contains the scores of the prompt. */
  readonly promptCopies: number;
}

/** What sampling may cost at most. */
export interface SamplePrice {
  /** Tokens to read and to sample. */
  readonly tokens: number;
  readonly answerBytes: number;
  /** What most of the answer comes from. */
  readonly dearest: PricePart;
}

/** The price of orders that are answered together. */
export function priceOfSamples(
  orders: readonly SampleOrder[],
  { form, promptCopies }: AnswerShape,
): SamplePrice {
  const bytes = answerForms[form];
  let [tokens, plain, alternatives, prompts] = [0, 0, 0, 0];
  for (const order of orders) {
    const { prompt, numSamples, maxTokens, topLogprobs = 0, logprobTokens = [] } = order;
    const { promptLogprobs, topkPromptLogprobs = 0, promptAlternatives = 0, promptTargets } = order;
    const sampled = numSamples * maxTokens;
    tokens += prompt.length + sampled;
    plain += sampled * bytes.token;
    alternatives += sampled * (topLogprobs + logprobTokens.length) * bytes.alternative;
    const scored = (promptLogprobs ? 1 : 0) + topkPromptLogprobs + promptAlternatives;
    const scores = prompt.length * scored + (promptTargets?.tokens.length ?? 0);
    prompts += promptCopies * (prompt.length * 4 + scores * bytes.alternative);
  }
  const sampledPart = orders.some(({ numSamples }) => numSamples > 1) ? "samples" : "tokens";
  const parts = { [sampledPart]: plain, logprobs: alternatives, prompt: prompts };
  const [[dearest]] = Object.entries(parts).toSorted(([, a], [, b]) => b - a) as [
    [PricePart, number],
  ];
  return { tokens, answerBytes: plain + alternatives + prompts, dearest };
}

/** Refuses what would cost more than the limits; `refuse` names the field that a part comes from. */
export function checkSamplePrice(
  { tokens, answerBytes, dearest }: SamplePrice,
  limits: ServerLimits,
  refuse: (part: PricePart, problem: string) => ApiError,
): void {
  const { maxRequestTokens, maxAnswerBytes } = limits;
  if (tokens > maxRequestTokens) {
    const part = dearest === "logprobs" ? "samples" : dearest;
    throw refuse(
      part,
      `the request may come to ${tokens} tokens; the limit is ${maxRequestTokens}`,
    );
  }
  if (answerBytes <= maxAnswerBytes) return;
  const most = `the limit is ${maxAnswerBytes}; ask for fewer samples, tokens or log-probabilities`;
  throw refuse(dearest, `the answer may come to ${answerBytes} bytes; ${most}`);
}
