import type { Context } from "../context/context.js";

/**
 * Time during which the server could listen. It grows by the pieces between two ticks, and a piece that is
 * longer than ticks can be apart counts as no more than that: the process was stopped, the machine slept
 * or something held the event loop, and nobody could be heard meanwhile.
 */
export class ListeningTime {
  readonly #clock: Context["clock"];
  readonly #maxPieceMs: number;
  #tickedAt: number;
  #now = 0;

  constructor(clock: Context["clock"], maxPieceMs: number) {
    this.#clock = clock;
    this.#maxPieceMs = maxPieceMs;
    this.#tickedAt = clock.elapsed();
  }

  /** Milliseconds of listening, as of the last tick. */
  get now(): number {
    return this.#now;
  }

  tick(): void {
    const at = this.#clock.elapsed();
    this.#now += Math.min(at - this.#tickedAt, this.#maxPieceMs);
    this.#tickedAt = at;
  }
}
