import type { QueueState } from "../types/futures.js";

/**
 * Where an operation stands.
 *
 * - `queued`: waits here for its turn or for permission to be sent.
 * - `running`: the server has it, waiting or at work.
 * - `paused`: the server has it but says that it does not work on it; `reason` tells why.
 * - `done`, `failed`: over.
 */
export type FutureState = "queued" | "running" | "paused" | "done" | "failed";

/** One look at an operation. */
export interface FutureStatus {
  /** Where the operation stands. */
  readonly state: FutureState;
  /** Why it is paused, in words; null otherwise. */
  readonly reason: string | null;
  /** What the server last said about its queue; null while it has not said anything. */
  readonly queueState: QueueState | null;
  /** The server's ids; one per chunk, in the order of acceptance. */
  readonly requestIds: readonly string[];
  /** How often the server was asked for the result. */
  readonly pollCount: number;
}

/** Where the time of an operation went, in milliseconds; parts of parallel chunks add up. */
export interface FutureTimings {
  /** Waiting in this process: for its turn and for limits on what may be under way. */
  readonly waitMs: number;
  /** Turning the data into a request body. */
  readonly encodeMs: number;
  /** From sending to the server's acceptance, attempts included; to the result where that came along. */
  readonly submitMs: number;
  /** From acceptance until the result was announced: waiting and computing at the server. */
  readonly queueMs: number;
  /** Receiving the result. */
  readonly downloadMs: number;
  /** Turning the received bytes into values. */
  readonly decodeMs: number;
}
