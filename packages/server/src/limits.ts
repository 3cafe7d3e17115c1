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
  /** Sequences that the engine works on at the same time. @default 64 */
  readonly maxRunningSequences: number;
  /** Samples that are answered on their connection at the same time, as streams or whole. @default 64 */
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
  /** How long shutting down waits for what is running. @default 30 s */
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
  maxRunningSequences: 64,
  maxStreams: 64,
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
