import { StoppedError } from "../errors/failure.js";
import type { RequestHead } from "../store/requests-table.js";
import type { QueueNote } from "./queue-note.js";
import { SequenceQueue } from "./sequence-queue.js";

/** What goes on in a lane. */
export interface LaneView {
  readonly running: {
    readonly kind: string;
    readonly seq: number | null;
    readonly since: number;
  } | null;
  readonly waiting: number;
  /** When the oldest of those that wait was accepted. */
  readonly oldestAt: number | null;
  /** Why it waits, as those who ask are told. */
  readonly note: QueueNote | null;
  readonly isHeld: boolean;
}

/** Carries requests of a model out; nothing here ever rejects. */
export interface LaneWork {
  /**
   * Runs one request to its committed outcome, or leaves it to the next start when the server stops;
   * `nextSeq` is whose turn it is afterwards.
   */
  readonly run: (request: RequestHead, nextSeq: number, signal: AbortSignal) => Promise<void>;
  /** Why the request that is being run does not make progress, if so. */
  readonly note: () => QueueNote | undefined;
  /** Fails a request that never ran. */
  readonly refuse: (request: RequestHead, error: StoppedError) => Promise<void>;
}

/**
 * The requests of one model, one at a time and in the order of their numbers.
 *
 * - Each request runs alone: repeating the journal must give the same bits.
 * - The next one starts after the outcome of the one before is committed.
 * - Stopping gives up what runs and fails what waits; pausing leaves both to the next start.
 */
export class ModelLane {
  readonly modelId: string;
  readonly #work: LaneWork;
  readonly #queue: SequenceQueue<RequestHead>;
  readonly #stopping = new AbortController();
  #running: RequestHead | undefined;
  #loop: Promise<void> | undefined;
  #runningSince = 0;
  #isPaused = false;
  /** Why nothing new is begun, while somebody holds the lane. */
  #held: string | null = null;
  readonly #beside: (() => Promise<void>)[] = [];
  #pendingBytes = 0;

  constructor(modelId: string, nextSeq: number, work: LaneWork) {
    this.modelId = modelId;
    this.#work = work;
    this.#queue = new SequenceQueue(nextSeq);
  }

  get isIdle(): boolean {
    return this.#loop === undefined;
  }

  /** The number whose turn it is. */
  get nextSeq(): number {
    return this.#queue.nextSeq;
  }

  /** Bytes of the requests that wait. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  get pendingCount(): number {
    return this.#queue.size + (this.#running ? 1 : 0);
  }

  /** Takes an accepted request in. */
  add(request: RequestHead): void {
    if (this.#stopping.signal.aborted) {
      void this.#work.refuse(request, this.#stopping.signal.reason as StoppedError);
    } else if (!this.#isPaused) {
      this.#queue.add(request);
      this.#pendingBytes += request.payloadBytes;
      this.#wake();
    }
  }

  /** Whether a request of this number would run at once. */
  waitsFor(seq: number | null): boolean {
    const isFree = this.isIdle && this.#held === null && this.#queue.size === 0;
    return isFree && seq === this.nextSeq && !this.#isPaused && !this.#stopping.signal.aborted;
  }

  /** Takes a request in that is being accepted; when it is not, the lane waits for its number again. */
  begin(request: RequestHead, accepted: Promise<void>): void {
    accepted.catch(() => this.#queue.withdraw(request));
    this.add(request);
  }

  /** Begins nothing new until `release`; those who ask are told why. */
  hold(reason: string): void {
    this.#held = reason;
  }

  release(): void {
    this.#held = null;
    this.#wake();
  }

  /** Does something between two requests, also while the lane is held. */
  beside<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { signal } = this.#stopping;
    return new Promise((resolve, reject) => {
      this.#beside.push(() => work(signal).then(resolve, reject));
      this.#wake();
    });
  }

  /** What goes on in it. */
  view(): LaneView {
    const running = this.#running;
    const oldest = this.#queue.oldest;
    const note = running ? this.#work.note() : oldest && this.note(oldest);
    return {
      running: running ? { kind: running.kind, seq: running.seq, since: this.#runningSince } : null,
      waiting: this.#queue.size,
      oldestAt: oldest?.acceptedAt ?? null,
      note: note ?? null,
      isHeld: this.#held !== null,
    };
  }

  /** Why a request has not finished yet. */
  note(request: RequestHead): QueueNote {
    if (this.#running?.requestId === request.requestId) {
      return this.#work.note() ?? { queueState: "active", reason: `${request.kind} is running` };
    }
    if (this.#held !== null) return { queueState: "paused_capacity", reason: this.#held };
    const missing = this.#queue.missingSeq;
    if (missing !== null && request.seq !== null && !this.#running) {
      return {
        queueState: "paused_capacity",
        reason: `waiting for request ${missing} of this model, which has not arrived`,
      };
    }
    const ahead = Math.max(0, this.#queue.countBefore(request)) + (this.#running ? 1 : 0);
    return { queueState: "active", reason: `${ahead} requests of this model come first` };
  }

  /** Gives up what runs and fails what waits or comes later, all with this reason. */
  async stop(reason: string): Promise<void> {
    const error = new StoppedError(reason);
    this.#stopping.abort(error);
    const waiting = this.#queue.drain();
    this.#pendingBytes = 0;
    await Promise.all(waiting.map((request) => this.#work.refuse(request, error)));
    await this.#loop;
  }

  /** Lets what runs finish and starts nothing more; what waits stays in the store. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    this.#queue.drain();
    await this.#loop;
  }

  async #run(): Promise<void> {
    for (;;) {
      const beside = this.#beside.shift();
      if (beside) {
        await beside();
        continue;
      }
      const request = this.#held === null ? this.#queue.take() : undefined;
      if (!request) break;
      this.#running = request;
      this.#runningSince = Date.now();
      this.#pendingBytes -= request.payloadBytes;
      await this.#work.run(request, this.#queue.nextSeq, this.#stopping.signal);
      this.#running = undefined;
    }
    this.#loop = undefined;
  }

  #wake(): void {
    // In a later turn, so that the loop is on record before it can end.
    this.#loop ??= Promise.resolve().then(() => this.#run());
  }
}
