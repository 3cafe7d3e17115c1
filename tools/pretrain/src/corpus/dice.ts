import { RandomStream } from "../../../../packages/engine/src/util/random.js";

/** Something and how often it is chosen, relative to what it is chosen among. */
export interface Weighted<T> {
  readonly weight: number;
  readonly value: T;
}

/**
 * Random choices that are fixed by a key and know how surprising they were.
 *
 * Text that is written by choosing has the probability of its choices. Their information, in nats, is
 * what a perfect model of the writer would lose on the text, so it is the measure for a real one. (Two
 * ways to write the same text make it an upper bound.)
 */
export class Dice {
  readonly #random: RandomStream;
  #nats = 0;

  constructor(...key: readonly number[]) {
    this.#random = new RandomStream(...key);
  }

  /** Information of all choices so far. */
  get nats(): number {
    return this.#nats;
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number): number {
    this.#nats += Math.log(count);
    return Math.floor(this.#random.next() * count);
  }

  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  chance(probability: number): boolean {
    const hit = this.#random.next() < probability;
    this.#nats -= Math.log(hit ? probability : 1 - probability);
    return hit;
  }

  pick<T>(list: readonly T[]): T {
    const value = list[this.below(list.length)];
    if (value === undefined) throw new Error("nothing to pick from");
    return value;
  }

  pickWeighted<T>(list: readonly Weighted<T>[]): T {
    const total = list.reduce((sum, { weight }) => sum + weight, 0);
    let rest = this.#random.next() * total;
    const found = list.find(({ weight }) => (rest -= weight) < 0) ?? list.at(-1);
    if (found === undefined) throw new Error("nothing to pick from");
    this.#nats -= Math.log(found.weight / total);
    return found.value;
  }

  /** Different members of a list, in random order. */
  sample<T>(list: readonly T[], count: number): T[] {
    const left = [...list];
    if (count > left.length) throw new Error(`${count} of ${left.length} cannot be sampled`);
    return Array.from({ length: count }, () => left.splice(this.below(left.length), 1)).flat();
  }

  shuffle<T>(list: readonly T[]): T[] {
    return this.sample(list, list.length);
  }

  /** Draws until a draw is accepted; the ones that were not leave no trace in `nats`. */
  until<T>(draw: () => T, accept: (value: T) => boolean): T {
    const found = this.tryUntil(draw, accept, 10_000);
    if (found === undefined) throw new Error("no draw was accepted");
    return found;
  }

  /** The same with an end: undefined when none of so many draws was accepted. */
  tryUntil<T>(draw: () => T, accept: (value: T) => boolean, attempts: number): T | undefined {
    const before = this.#nats;
    for (let attempt = 0; attempt < attempts; attempt++) {
      const value = draw();
      if (accept(value)) return value;
      this.#nats = before;
    }
    return undefined;
  }
}
