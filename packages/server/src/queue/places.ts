import { tooMany } from "../errors/api-error.js";
import { FairQueue } from "./fair-queue.js";

interface Waiting {
  readonly start: () => void;
}

/**
 * A bounded number of places; who finds none waits for one.
 *
 * - Owners take turns; within one the order is that of arrival.
 * - The number of those who wait is bounded too: one owner may take half of what others leave.
 */
export class Places {
  readonly #maxTaken: number;
  readonly #maxWaiting: number;
  readonly #waiting = new FairQueue<Waiting>();
  readonly #waitingByOwner = new Map<string, number>();
  #taken = 0;
  #nextId = 0;

  constructor(maxTaken: number, maxWaiting: number) {
    this.#maxTaken = maxTaken;
    this.#maxWaiting = maxWaiting;
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Refuses where too many wait already. */
  check(owner: string): void {
    if (this.#taken < this.#maxTaken) return;
    const own = this.#waitingByOwner.get(owner) ?? 0;
    const share = Math.ceil((this.#maxWaiting - (this.#waiting.size - own)) / 2);
    if (own < share) return;
    throw tooMany(
      `${this.#waiting.size} requests are waiting to sample; try again in a moment`,
      1000,
    );
  }

  /** Waits for a place; returns the way to give it back. */
  async take(owner: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    this.check(owner);
    if (this.#taken < this.#maxTaken) this.#taken += 1;
    else await this.#wait(owner, signal);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#giveOn();
    };
  }

  #wait(owner: string, signal: AbortSignal): Promise<void> {
    this.#count(owner, 1);
    // A group of its own, so that it can be taken out alone; groups of an owner keep their order.
    const group = String(this.#nextId++);
    return new Promise((resolve, reject) => {
      const entry: Waiting = {
        start: () => {
          signal.removeEventListener("abort", giveUp);
          this.#count(owner, -1);
          resolve();
        },
      };
      const giveUp = (): void => {
        this.#waiting.remove(owner, group);
        this.#count(owner, -1);
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", giveUp, { once: true });
      this.#waiting.add(owner, group, entry);
    });
  }

  /** A place goes to who waits, or is free. */
  #giveOn(): void {
    const next = this.#waiting.take();
    if (next) next.start();
    else this.#taken -= 1;
  }

  #count(owner: string, change: number): void {
    const count = (this.#waitingByOwner.get(owner) ?? 0) + change;
    if (count > 0) this.#waitingByOwner.set(owner, count);
    else this.#waitingByOwner.delete(owner);
  }
}
