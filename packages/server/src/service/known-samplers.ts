import type { Sampler, SamplersTable } from "../store/samplers-table.js";

interface Known {
  readonly sampler: Sampler;
  /** Beyond all numbers that requests have had. */
  nextSeq: number | bigint;
}

const maxKnown = 1000;

/** Sampling sessions that were asked for lately; what they are never changes, and every sample asks. */
export class KnownSamplers {
  readonly #table: SamplersTable;
  readonly #known = new Map<string, Known>();

  constructor(table: SamplersTable) {
    this.#table = table;
  }

  /** A sampling session that is committed: not to be asked inside of a transaction. */
  get(samplerId: string): Sampler | undefined {
    const known = this.#known.get(samplerId);
    if (known) return known.sampler;
    const found = this.#table.get(samplerId);
    if (!found) return undefined;
    this.#known.set(samplerId, { sampler: found, nextSeq: 0 });
    const [oldest] = this.#known.keys();
    if (this.#known.size > maxKnown && oldest !== undefined) this.#known.delete(oldest);
    return found;
  }

  /**
   * Whether a request has a number beyond those that came before it. Then it is new, or came before this was kept in
   * mind: rare enough to ask the store later than work on it begins.
   */
  isNext(samplerId: string, seq: number | bigint): boolean {
    const known = this.#known.get(samplerId);
    if (!known || seq < known.nextSeq) return false;
    known.nextSeq = BigInt(seq) + 1n;
    return true;
  }
}
