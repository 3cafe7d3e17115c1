import { randomBytes } from "node:crypto";
import type { StudioEvent } from "tinker-ts/wire";

/** An event with its place in the order of all. */
export interface NumberedEvent {
  readonly n: number;
  readonly owner: string;
  readonly topic: string;
  readonly kind: StudioEvent["kind"];
  /** Everything but the kind, as JSON: made once for all who listen, and to remember. */
  readonly data: string;
}

/** Who listens to what. */
export interface Listener {
  readonly owner: string;
  readonly topics: ReadonlySet<string>;
  /** Called for each event, in order. */
  readonly tell: (event: NumberedEvent) => void;
}

/** Events that are remembered for those who come back. */
const ringLength = 10_000;

/** Characters that are remembered: the points of a run with many metrics are megabytes. */
const ringSize = 16_000_000;

/** What is told at once to those who come back; whoever missed more begins anew. */
const maxMissed = 2_000_000;

/** How long after the last listener has gone events are still made. */
const lingerMs = 120_000;

/**
 * Tells open pages what happens.
 *
 * - Events have numbers; who comes back with one gets what was missed, or is told to start anew.
 * - While nobody looks nothing is made: `isWatched` is asked first.
 */
export class EventHub {
  /** Numbers of another process mean nothing here. */
  readonly #epoch = randomBytes(4).toString("hex");
  readonly #listeners = new Set<Listener>();
  readonly #ring: NumberedEvent[] = [];
  #size = 0;
  #next = 1;
  /** Events before this were not kept. */
  #since = 1;
  #leftAt = Number.NEGATIVE_INFINITY;

  /** Whether somebody looks, or did a moment ago. */
  get isWatched(): boolean {
    return this.#listeners.size > 0 || performance.now() - this.#leftAt < lingerMs;
  }

  /** Whether somebody listens to a topic of an owner right now. */
  hasListener(owner: string, topic: string): boolean {
    for (const listener of this.#listeners) {
      if (listener.owner === owner && listener.topics.has(topic)) return true;
    }
    return false;
  }

  publish(owner: string, topic: string, event: StudioEvent): void {
    if (!this.isWatched) {
      // Whoever comes with an older number starts anew.
      this.#ring.length = 0;
      this.#size = 0;
      this.#since = ++this.#next;
      return;
    }
    const { kind, ...rest } = event;
    const numbered = { n: this.#next++, owner, topic, kind, data: JSON.stringify(rest) };
    this.#ring.push(numbered);
    this.#size += numbered.data.length;
    if (this.#ring.length > ringLength * 1.1 || this.#size > ringSize) this.#forgetOldest();
    for (const listener of this.#listeners) {
      if (matches(listener, numbered)) listener.tell(numbered);
    }
  }

  /** Begins to listen; what was missed since the cursor is told at once. */
  listen(listener: Listener, cursor: string | null): { isReset: boolean; stop: () => void } {
    const [epoch, number] = cursor?.split("-") ?? [];
    const n = Number(number);
    const isKnown = epoch === this.#epoch && Number.isInteger(n) && n + 1 >= this.#since;
    const missed = isKnown
      ? this.#ring.filter((event) => event.n > n && matches(listener, event))
      : [];
    const isReset =
      (cursor !== null && !isKnown) ||
      missed.reduce((size, { data }) => size + data.length, 0) > maxMissed;
    if (!isReset) for (const event of missed) listener.tell(event);
    this.#listeners.add(listener);
    const stop = (): void => {
      this.#listeners.delete(listener);
      this.#leftAt = performance.now();
    };
    return { isReset, stop };
  }

  #forgetOldest(): void {
    let count = Math.max(0, this.#ring.length - ringLength);
    let size = this.#ring.slice(0, count).reduce((sum, { data }) => sum + data.length, 0);
    while (this.#size - size > ringSize * 0.9) size += this.#ring[count++]!.data.length;
    this.#size -= size;
    this.#ring.splice(0, count);
    this.#since = this.#ring[0]?.n ?? this.#next;
  }

  /** The cursor of an event, or of now. */
  cursor(n = this.#next - 1): string {
    return `${this.#epoch}-${n}`;
  }
}

function matches(listener: Listener, { owner, topic }: NumberedEvent): boolean {
  return listener.owner === owner && listener.topics.has(topic);
}
