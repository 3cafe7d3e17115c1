import { ByteSemaphore } from "../runtime/byte-semaphore.js";
import type { Runtime } from "../runtime/runtime.js";
import type { TelemetrySink } from "../telemetry/sink.js";
import type { BillingPause } from "./billing-pause.js";
import type { Connection } from "./connection.js";
import { executeWithRetries, type RetryOptions } from "./execute-with-retries.js";
import type { Heartbeat } from "./heartbeat.js";
import { SampleGate } from "./sample-gate.js";

/** The parts of an open session. */
export interface SessionParts {
  readonly connection: Connection;
  readonly sessionId: string;
  readonly telemetry: TelemetrySink;
  readonly heartbeat: Heartbeat;
}

/** A session at the server: what its training and sampling clients share. */
export class Session {
  readonly sessionId: string;
  readonly connection: Connection;
  readonly telemetry: TelemetrySink;
  /** Bytes of forward and backward passes that may be on their way to the server. */
  readonly forwardBackwardBytes: ByteSemaphore;
  /** Limits on samples that are on their way to the server. */
  readonly sampleGate: SampleGate;
  readonly #heartbeat: Heartbeat;
  #clientCount = 0;
  #hasEnded = false;
  #modelCount = 0;
  #samplerCount = 0;

  constructor({ connection, sessionId, telemetry, heartbeat }: SessionParts) {
    this.connection = connection;
    this.sessionId = sessionId;
    this.telemetry = telemetry;
    this.#heartbeat = heartbeat;
    const { config, runtime } = connection;
    this.forwardBackwardBytes = new ByteSemaphore(config.fwdbwdDispatchBytesSemaphoreSize);
    this.sampleGate = new SampleGate(runtime.clock, config.sampleDispatchBytesSemaphoreSize);
  }

  get runtime(): Runtime {
    return this.connection.runtime;
  }

  get billing(): BillingPause {
    return this.connection.billing;
  }

  get closed(): AbortSignal {
    return this.connection.closed;
  }

  /** Whether it is over, by this end's doing or the server's; nothing new may be made in it. */
  get hasEnded(): boolean {
    return this.#hasEnded || this.#heartbeat.isSessionOver;
  }

  /** Asks the server whether it is over. */
  async checkEnded(): Promise<boolean> {
    return this.hasEnded || (await this.#heartbeat.check());
  }

  /** A client uses this session from now on. */
  join(): void {
    this.#clientCount++;
  }

  /** A client that could not be made uses it no more; says whether it was the only one. */
  leave(): boolean {
    this.#clientCount--;
    return this.#clientCount === 0;
  }

  /** The number of the next model of this session. */
  nextModelSeqId(): number {
    return this.#modelCount++;
  }

  /** The number of the next sampler of this session, saved or created. */
  nextSamplingSessionSeqId(): number {
    return this.#samplerCount++;
  }

  /** Runs a call in the retry loop and reports about it under this session. */
  retrying<T>(endpoint: string, call: () => Promise<T>, options: RetryOptions = {}): Promise<T> {
    return executeWithRetries(call, this, endpoint, options);
  }

  /** Ends the background work; the server notices by the missing heartbeats. */
  stop(): void {
    this.#hasEnded = true;
    this.#heartbeat.stop();
    this.telemetry.stop();
  }
}
