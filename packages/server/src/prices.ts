import type { SampleOrder } from "./engine-port/engine-port.js";
import { ApiError } from "./errors/api-error.js";

/*
 * Every request has a price before its work, and every price a limit: bytes to receive, tokens to compute, bytes to
 * hold and to answer, rows to read. What is beyond a limit is refused by the field that makes it so. What is within
 * takes turns at the scheduler, and owners who have spent more wait longer.
 */

/** Every bound the server keeps; all of them can be set. */
export interface ServerLimits {
  /** Largest request body as sent. @default 128 MiB */
  readonly maxBodyBytes: number;
  /** Largest request body after decompression. @default 256 MiB */
  readonly maxDecompressedBytes: number;
  /** Bodies under way at the same time; one owner gets at most half of what others leave. @default 512 MiB */
  readonly maxBodiesBytes: number;
  /** A body that comes more slowly than this is given up. @default 16 KiB */
  readonly minBodyBytesPerSecond: number;
  /** Longest time a body may take to arrive. @default 5 min */
  readonly bodyTimeoutMs: number;
  /** Largest adapter that can be brought in, as sent and unpacked. @default 4 GiB */
  readonly maxImportBytes: number;
  /** Most data in one forward or forward/backward request. @default 4096 */
  readonly maxBatchData: number;
  /** Longest prompt that is taken, whatever the context of its model. @default 262144 */
  readonly maxPromptTokens: number;
  /** Most sequences of one sample request. @default 1024 */
  readonly maxNumSamples: number;
  /** How far ahead of its turn a training request may be accepted. @default 1024 */
  readonly maxPendingPerModel: number;
  /** Bytes of accepted and unfinished training requests per model. @default 1 GiB */
  readonly maxPendingBytesPerModel: number;
  /** Accepted and unfinished sample requests of one owner; beyond it 429. @default 8192 */
  readonly maxPendingSamples: number;
  /** Most tokens of one sample request: those of its prompts, and all that it may sample. @default 67108864 */
  readonly maxRequestTokens: number;
  /** Largest answer to a sample request, as its fields allow it to become. @default 64 MiB */
  readonly maxAnswerBytes: number;
  /** Sequences of one turn at sampling; a request of more takes several turns. @default 64 */
  readonly maxTurnSequences: number;
  /** Sequences in the engine at the same time; one owner gets half of what others leave. @default 128 */
  readonly maxRunningSequences: number;
  /** Samples answered on their connection at the same time; one owner gets half of what others leave. @default 128 */
  readonly maxStreams: number;
  /** Such samples that wait for their turn; beyond it 429. @default 4096 */
  readonly maxWaitingStreams: number;
  /** A stream that has nothing to say says so this often. @default 15 s */
  readonly streamPingMs: number;
  /** Open sessions of one owner. @default 4096 */
  readonly maxSessions: number;
  /** Polls that may wait at the same time; one owner gets at most half of what others leave. @default 20000 */
  readonly maxWaitingPolls: number;
  /** Longest time a poll waits before it is told to ask again. @default 20 s */
  readonly longPollMs: number;
  /** Results above this size are announced first where the client allows it. @default 1 MiB */
  readonly inlineResultBytes: number;
  /** A session without a sign of life for this long is closed. @default 5 min */
  readonly sessionTimeoutMs: number;
  /** How long a result stays after it was first fetched. @default 10 min */
  readonly fetchedGraceMs: number;
  /** How long a result stays that nobody fetches. @default 24 h */
  readonly resultTtlMs: number;
  /** Results kept altogether; the oldest of whoever has most go first. @default 2 GiB */
  readonly maxResultBytes: number;
  /** How long it stays known when a finished request ran. @default 7 days */
  readonly requestRecordTtlMs: number;
  /** Finished requests that stay known; the oldest go first. @default 500000 */
  readonly maxRequestRecords: number;
  /** How long usage, the audit log, ended runs and deleted checkpoints stay on record. @default 90 days */
  readonly recordTtlMs: number;
  /** Sampler weights made for one sampling session go when unused for this long. @default 6 h */
  readonly ephemeralTtlMs: number;
  /** Such weights altogether; the longest unused of whoever has most go first. @default 8 GiB */
  readonly maxEphemeralBytes: number;
  /** Adapters kept in memory; the longest unused are put on disk. @default 64 */
  readonly maxLiveModels: number;
  /** Sampler weights kept in memory; the longest unused are dropped. @default 64 */
  readonly maxLoadedSamplers: number;
  /** Journal of one model at which its state is written out. @default 256 MiB */
  readonly maxJournalBytes: number;
  /** Longest work that a restart may have to repeat per model, as a multiple of writing its state. @default 20 */
  readonly maxReplayRatio: number;
  /** Curves kept altogether; those of the longest untouched runs of whoever has most go first. @default 1 GiB */
  readonly maxSeriesBytes: number;
  /** Data, rollouts and samples kept to be looked at; the oldest of whoever has most go first. @default 2 GiB */
  readonly maxExhibitBytes: number;
  /** Text lines of one owner's runs; the oldest of its longest untouched runs go first. @default 256 MiB */
  readonly maxLogLineBytes: number;
  /** Logged runs of one owner; the longest untouched that are not pinned go, twice as many are refused. @default 20000 */
  readonly maxRuns: number;
  /** Named checkpoints of one owner; beyond it saves fail until some are deleted. @default 10000 */
  readonly maxCheckpoints: number;
  /** Bytes of those. @default 1 TiB */
  readonly maxCheckpointBytes: number;
  /** How long each part of shutting down waits for what is running; there are three. @default 30 s */
  readonly shutdownGraceMs: number;
}

const mebibyte = 1024 * 1024;
const minute = 60_000;
const hour = 60 * minute;

/** The limits that hold unless told otherwise. */
export const defaultLimits: ServerLimits = {
  maxBodyBytes: 128 * mebibyte,
  maxDecompressedBytes: 256 * mebibyte,
  maxBodiesBytes: 512 * mebibyte,
  minBodyBytesPerSecond: 16 * 1024,
  bodyTimeoutMs: 5 * minute,
  maxImportBytes: 4096 * mebibyte,
  maxBatchData: 4096,
  maxPromptTokens: 262_144,
  maxNumSamples: 1024,
  maxPendingPerModel: 1024,
  maxPendingBytesPerModel: 1024 * mebibyte,
  maxPendingSamples: 8192,
  maxRequestTokens: 2 ** 26,
  maxAnswerBytes: 64 * mebibyte,
  maxTurnSequences: 64,
  maxRunningSequences: 128,
  maxStreams: 128,
  maxWaitingStreams: 4096,
  streamPingMs: 15_000,
  maxSessions: 4096,
  maxWaitingPolls: 20_000,
  longPollMs: 20_000,
  inlineResultBytes: mebibyte,
  sessionTimeoutMs: 5 * minute,
  fetchedGraceMs: 10 * minute,
  resultTtlMs: 24 * hour,
  maxResultBytes: 2048 * mebibyte,
  requestRecordTtlMs: 7 * 24 * hour,
  maxRequestRecords: 500_000,
  recordTtlMs: 90 * 24 * hour,
  ephemeralTtlMs: 6 * hour,
  maxEphemeralBytes: 8192 * mebibyte,
  maxLiveModels: 64,
  maxLoadedSamplers: 64,
  maxJournalBytes: 256 * mebibyte,
  maxReplayRatio: 20,
  maxSeriesBytes: 1024 * mebibyte,
  maxExhibitBytes: 2048 * mebibyte,
  maxLogLineBytes: 256 * mebibyte,
  maxRuns: 20_000,
  maxCheckpoints: 10_000,
  maxCheckpointBytes: 1024 * 1024 * mebibyte,
  shutdownGraceMs: 30_000,
};

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
  /** How often the answer holds what is said of the prompt. */
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
