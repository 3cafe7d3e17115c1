import { Semaphore } from "../runtime/semaphore.js";
import type { TelemetrySink } from "../telemetry/sink.js";
import { Connection } from "./connection.js";
import type { Heartbeat } from "./heartbeat.js";

/** How the program of a session ended. */
export interface SessionEnd {
  readonly status: "success" | "errored" | "interrupted";
  /** What happened, for people to read. */
  readonly detail?: string | undefined;
}

/** A session at the server: a connection with an id and numbers of its own, for training and sampling clients. */
export class Session extends Connection {
  readonly sessionId: string;
  /** Bytes of forward and backward passes that may be on their way to the server. */
  readonly forwardBackwardBytes: Semaphore;
  /** One pass is encoded at a time. */
  readonly encoding = new Semaphore(1);
  readonly #heartbeat: Heartbeat;
  #clientCount = 0;
  #hasEnded = false;
  #modelCount = 0;
  #samplerCount = 0;

  constructor(
    { parts }: Connection,
    sessionId: string,
    telemetry: TelemetrySink,
    heartbeat: Heartbeat,
  ) {
    super(parts, telemetry);
    this.sessionId = sessionId;
    this.#heartbeat = heartbeat;
    this.forwardBackwardBytes = new Semaphore(this.config.fwdbwdDispatchBytesSemaphoreSize);
  }

  /** True once the session was stopped here or has ended at the server; nothing new may be made in it. */
  get hasEnded(): boolean {
    return this.#hasEnded || this.#heartbeat.isSessionOver;
  }

  /** Asks the server whether the session has ended. */
  async checkEnded(): Promise<boolean> {
    return this.hasEnded || (await this.#heartbeat.check());
  }

  /** A client uses this session from now on. */
  join(): void {
    this.#clientCount++;
  }

  /** A client that could not be made leaves; true if it was the only one. */
  leave(): boolean {
    return --this.#clientCount === 0;
  }

  /** The number of the next model of this session. */
  nextModelSeqId(): number {
    return this.#modelCount++;
  }

  /** The number of the next sampler of this session, saved or created. */
  nextSamplingSessionSeqId(): number {
    return this.#samplerCount++;
  }

  /** Ends the background work; the server notices by the missing heartbeats. */
  stop(): void {
    this.#hasEnded = true;
    this.#heartbeat.stop();
    this.telemetry.stop();
  }
}
