/** Final text, and the stop text that ended it. */
export interface CutText {
  readonly text: string;
  /** The stop text that was found; null while there is none. */
  readonly stop: string | null;
}

/**
 * Ends a growing text exactly before the first of some stop texts.
 *
 * Only a possible beginning of one is held back. Of two matches at once, the one that begins
 * first wins, then the longer.
 */
export class StopCutter {
  readonly #stops: readonly string[];
  readonly #keepsStop: boolean;
  #held = "";

  constructor(stops: readonly string[], keepsStop: boolean) {
    this.#stops = stops;
    this.#keepsStop = keepsStop;
  }

  /** Adds text; until `mayStop`, stop texts are ordinary text. */
  push(text: string, mayStop: boolean): CutText {
    if (this.#stops.length === 0) return { text, stop: null };
    const all = this.#held + text;
    const found = mayStop ? this.#first(all) : undefined;
    if (found) {
      const end = found.start + (this.#keepsStop ? found.stop.length : 0);
      this.#held = "";
      return { text: all.slice(0, end), stop: found.stop };
    }
    const heldLength = this.#possibleStart(all);
    this.#held = all.slice(all.length - heldLength);
    return { text: all.slice(0, all.length - heldLength), stop: null };
  }

  /** Ends the text and returns the held-back part. */
  flush(): string {
    const held = this.#held;
    this.#held = "";
    return held;
  }

  #first(text: string): { start: number; stop: string } | undefined {
    let best: { start: number; stop: string } | undefined;
    for (const stop of this.#stops) {
      const start = text.indexOf(stop);
      if (start < 0) continue;
      const isBetter =
        best === undefined ||
        start < best.start ||
        (start === best.start && stop.length > best.stop.length);
      if (isBetter) best = { start, stop };
    }
    return best;
  }

  /** Length of the longest suffix of a text that is a prefix of a stop text. */
  #possibleStart(text: string): number {
    return Math.max(0, ...this.#stops.map((stop) => overlap(text, stop)));
  }
}

/** Length of the longest suffix of a text that is a proper prefix of a mark. */
export function overlap(text: string, mark: string): number {
  for (let length = Math.min(text.length, mark.length - 1); length > 0; length--) {
    if (mark.startsWith(text.slice(text.length - length))) return length;
  }
  return 0;
}
