import { ArgumentError } from "tinker-ts";
import { permutation, seededRandom } from "./random.js";

/** Rows and their share of the draws. */
export interface WeightedRows<T> {
  readonly rows: readonly T[];
  /** The share of the draws; give it for all sources or for none. @default by the number of rows */
  readonly weight?: number | undefined;
}

/** Options of `interleave`. */
export interface InterleaveOptions {
  /** @default 0 */
  readonly seed?: number | undefined;
  /**
   * When the mixture ends: after every source was exhausted once, while small ones repeat; after the first source was
   * exhausted; or after every row was drawn once.
   * @default "all_exhausted"
   */
  readonly stopping?:
    | "all_exhausted"
    | "first_exhausted"
    | "all_exhausted_without_replacement"
    | undefined;
}

/** Mixes sources: repeatedly draws a source by its weight and takes its next row, in the shuffled order of the source. */
export function interleave<T>(
  sources: readonly WeightedRows<T>[],
  options: InterleaveOptions = {},
): T[] {
  const { seed = 0, stopping = "all_exhausted" } = options;
  const weights = checkedWeights(sources);
  const random = seededRandom(seed, sources.length);
  const decks = sources.map(({ rows }, source) => new Deck(rows, seed, source));
  const mixed: T[] = [];
  for (;;) {
    const open = decks.map(
      (deck) => stopping !== "all_exhausted_without_replacement" || !deck.isDone,
    );
    const source = draw(weights, open, random);
    if (source === undefined) return mixed;
    mixed.push(decks[source]!.next());
    if (stopping === "first_exhausted" && decks[source]!.isDone) return mixed;
    if (stopping === "all_exhausted" && decks.every((deck) => deck.isDone)) return mixed;
  }
}

/** The rows of a source, shuffled for every pass. */
class Deck<T> {
  readonly #rows: readonly T[];
  readonly #seed: number;
  readonly #source: number;
  #order: Uint32Array = new Uint32Array();
  #taken = 0;

  constructor(rows: readonly T[], seed: number, source: number) {
    this.#rows = rows;
    this.#seed = seed;
    this.#source = source;
  }

  /** True when every row was taken. */
  get isDone(): boolean {
    return this.#taken >= this.#rows.length;
  }

  next(): T {
    const { length } = this.#rows;
    const place = this.#taken % length;
    if (place === 0) {
      const pass = this.#taken / length;
      this.#order = permutation(length, seededRandom(this.#seed, this.#source, pass));
    }
    this.#taken++;
    return this.#rows[this.#order[place]!]!;
  }
}

function draw(
  weights: readonly number[],
  open: readonly boolean[],
  random: () => number,
): number | undefined {
  const total = weights.reduce((sum, weight, source) => sum + (open[source] ? weight : 0), 0);
  let rest = random() * total;
  let last: number | undefined;
  for (const [source, weight] of weights.entries()) {
    if (!open[source]) continue;
    last = source;
    rest -= weight;
    if (rest < 0) return source;
  }
  return last;
}

function checkedWeights<T>(sources: readonly WeightedRows<T>[]): number[] {
  if (sources.length === 0) throw new ArgumentError("sources", "must hold at least one");
  for (const [index, { rows }] of sources.entries()) {
    if (rows.length === 0) throw new ArgumentError(`sources[${index}].rows`, "has no rows");
  }
  const given = sources.flatMap(({ weight }) => weight ?? []);
  if (given.length === 0) return sources.map(({ rows }) => rows.length);
  if (given.length < sources.length || !given.every((weight) => weight > 0)) {
    throw new ArgumentError("weight", "give every source a weight above 0, or none of them");
  }
  return given;
}
