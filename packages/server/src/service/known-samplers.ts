import type { Sampler, SamplersTable } from "../store/samplers-table.js";

const maxKnown = 1000;

/** Sampling sessions that were asked for lately; what they are never changes, and every sample asks. */
export class KnownSamplers {
  readonly #table: SamplersTable;
  readonly #known = new Map<string, Sampler>();

  constructor(table: SamplersTable) {
    this.#table = table;
  }

  /** A sampling session that is committed: not to be asked inside of a transaction. */
  get(samplerId: string): Sampler | undefined {
    const known = this.#known.get(samplerId);
    if (known) return known;
    const found = this.#table.get(samplerId);
    if (!found) return undefined;
    this.#known.set(samplerId, found);
    const [oldest] = this.#known.keys();
    if (this.#known.size > maxKnown && oldest !== undefined) this.#known.delete(oldest);
    return found;
  }
}
