/** Something that waits for its turn; `seq` null means that it has no place in the sequence. */
export interface Sequenced {
  readonly seq: number | null;
}

interface Waiting<E> {
  readonly entry: E;
  readonly arrival: number;
}

/**
 * Requests of one model, taken in the order of their sequence numbers whatever order they arrive in.
 *
 * - Clients send the first part of a batch last, so a gap is normal: what lies behind it waits.
 * - Entries without a number have no gap to wait for; they keep their order of arrival among
 *   themselves and against the numbered ones that can run.
 */
export class SequenceQueue<E extends Sequenced> {
  readonly #numbered = new Map<number, Waiting<E>>();
  #unnumbered: Waiting<E>[] = [];
  #nextSeq: number;
  #arrivals = 0;

  constructor(nextSeq: number) {
    this.#nextSeq = nextSeq;
  }

  /** The next number. */
  get nextSeq(): number {
    return this.#nextSeq;
  }

  get size(): number {
    return this.#numbered.size + this.#unnumbered.length;
  }

  /** The number everything waits for, or null when nothing waits behind a gap. */
  get missingSeq(): number | null {
    const isStuck = this.#numbered.size > 0 && !this.#numbered.has(this.#nextSeq);
    return isStuck ? this.#nextSeq : null;
  }

  add(entry: E): void {
    const waiting = { entry, arrival: this.#arrivals++ };
    if (entry.seq === null) {
      this.#unnumbered.push(waiting);
      return;
    }
    if (entry.seq < this.#nextSeq || this.#numbered.has(entry.seq)) {
      throw new RangeError(`sequence number ${entry.seq} has been used`);
    }
    this.#numbered.set(entry.seq, waiting);
  }

  /** Takes the entry that may run now, if there is one. */
  take(): E | undefined {
    const numbered = this.#numbered.get(this.#nextSeq);
    const [unnumbered] = this.#unnumbered;
    if (unnumbered && (!numbered || unnumbered.arrival < numbered.arrival)) {
      this.#unnumbered.shift();
      return unnumbered.entry;
    }
    if (!numbered) return undefined;
    this.#numbered.delete(this.#nextSeq++);
    return numbered.entry;
  }

  /** What has waited longest. */
  get oldest(): E | undefined {
    let oldest = this.#unnumbered[0];
    for (const waiting of this.#numbered.values()) {
      if (!oldest || waiting.arrival < oldest.arrival) oldest = waiting;
    }
    return oldest?.entry;
  }

  /** How many entries run before this one, as far as is known. */
  countBefore(entry: E): number {
    if (entry.seq === null) {
      return this.#unnumbered.findIndex((waiting) => waiting.entry === entry);
    }
    return entry.seq - this.#nextSeq;
  }

  /** Removes and returns everything that waits. */
  drain(): E[] {
    const all = [...this.#numbered.values(), ...this.#unnumbered];
    this.#numbered.clear();
    this.#unnumbered = [];
    return all.toSorted((a, b) => a.arrival - b.arrival).map(({ entry }) => entry);
  }
}
