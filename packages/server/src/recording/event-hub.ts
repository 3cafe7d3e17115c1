import { randomBytes } from "node:crypto";
import type { StudioEvent } from "tinker-ts/wire";

/** An event with its place in the order of all. */
export interface NumberedEvent {
  readonly n: number;
  readonly owner: string;
  readonly topic: string;
  readonly event: StudioEvent;
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
      this.#since = ++this.#next;
      return;
    }
    const numbered = { n: this.#next++, owner, topic, event };
    this.#ring.push(numbered);
    if (this.#ring.length > ringLength * 1.1) {
      this.#ring.splice(0, this.#ring.length - ringLength);
      this.#since = this.#ring[0]!.n;
    }
    for (const listener of this.#listeners) {
      if (matches(listener, numbered)) listener.tell(numbered);
    }
  }

  /** Begins to listen; what was missed since the cursor is told at once. */
  listen(listener: Listener, cursor: string | null): { isReset: boolean; stop: () => void } {
    const [epoch, number] = cursor?.split("-") ?? [];
    const n = Number(number);
    const isKnown = epoch === this.#epoch && Number.isInteger(n) && n + 1 >= this.#since;
    if (isKnown) {
      for (const event of this.#ring) {
        if (event.n > n && matches(listener, event)) listener.tell(event);
      }
    }
    this.#listeners.add(listener);
    const stop = (): void => {
      this.#listeners.delete(listener);
      this.#leftAt = performance.now();
    };
    return { isReset: !isKnown && cursor !== null, stop };
  }

  /** The cursor of an event, or of now. */
  cursor(n = this.#next - 1): string {
    return `${this.#epoch}-${n}`;
  }
}

function matches(listener: Listener, { owner, topic }: NumberedEvent): boolean {
  return listener.owner === owner && listener.topics.has(topic);
}
