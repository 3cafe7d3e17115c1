import type { SmootherState } from "../recording/smoothing.js";

/** Curves that are remembered; those that nobody has asked for longest go first. */
const maxChains = 512;

/**
 * Where smoothing stood at the ends of a series' chunks, for each half-life that was asked for: a zoom goes on from
 * there instead of from the first point.
 */
export class SmoothingMemory {
  readonly #chains = new Map<string, SmootherState[]>();

  /** The ends known so far, from the first chunk on; whoever gets further adds to them. */
  ends(series: string, halfLife: number): SmootherState[] {
    const name = `${halfLife} ${series}`;
    const ends = this.#chains.get(name) ?? [];
    this.#chains.delete(name);
    this.#chains.set(name, ends);
    if (this.#chains.size > maxChains) this.#chains.delete(this.#chains.keys().next().value!);
    return ends;
  }
}
