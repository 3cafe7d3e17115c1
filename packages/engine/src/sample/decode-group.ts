import type { AdapterSet, FrozenAdapter } from "./adapter-set.js";
import { decodedRow, type Decoder, type DecoderOutput } from "./decoder.js";
import type { KvMemory } from "./kv-memory.js";
import { KvRows, type KvShape } from "./kv-rows.js";
import { at } from "../util/arrays.js";
import type { Drawn, Sequence } from "./sequence.js";

/** Most adapters that one batch joins: every row pays for all of them. */
const maxAdapters = 4;

/** Longest sequence of the smallest group; each larger group holds sequences up to twice as long. */
const smallestLimit = 512;

/**
 * The limit of the group for sequences of some length. Sequences of up to `usualLength` tokens are never
 * in a group with longer ones.
 */
export function groupLimit(tokens: number, usualLength = Infinity): number {
  let limit = smallestLimit;
  while (limit < tokens) limit *= 2;
  return tokens <= usualLength ? Math.min(limit, usualLength) : limit;
}

/** A token that a step drew. */
export interface DrawnToken extends Drawn {
  readonly sequence: Sequence;
}

/** Sequences of similar length that are decoded together, one token each per step. */
export class DecodeGroup {
  /** Sequences of other scopes are not decoded with these: they would go at their pace. */
  readonly scope: string;
  /** Most tokens that a row may have after a step. */
  readonly limit: number;
  readonly #limitOf: (tokens: number) => number;
  readonly #maxRows: number;
  readonly #decoder: Decoder;
  readonly #join: (adapters: readonly FrozenAdapter[]) => AdapterSet;
  readonly #sequences: Sequence[] = [];
  #rows: KvRows;

  /** A group of a scope for sequences of so many tokens and others that have the same limit. */
  constructor(
    scope: string,
    tokens: number,
    limitOf: (tokens: number) => number,
    maxRows: number,
    shape: KvShape,
    memory: KvMemory,
    decoder: Decoder,
    join: (adapters: readonly FrozenAdapter[]) => AdapterSet,
  ) {
    this.scope = scope;
    this.limit = limitOf(tokens);
    this.#limitOf = limitOf;
    this.#maxRows = maxRows;
    this.#decoder = decoder;
    this.#join = join;
    this.#rows = new KvRows(shape, this.limit, 0, memory);
  }

  get sequences(): readonly Sequence[] {
    return this.#sequences;
  }

  /** Returns the memory; the group must not be used any more. */
  release(): void {
    this.#rows.release();
  }

  /** Whether a sequence can join. */
  accepts(sequence: Sequence, tokens: number): boolean {
    if (this.#limitOf(tokens) !== this.limit || this.#sequences.length >= this.#maxRows)
      return false;
    const adapters = this.#adapters();
    return adapters.length < maxAdapters || adapters.some(({ id }) => id === sequence.adapter.id);
  }

  /** Adds a sequence; its earlier tokens are a row of another store. `followers` more are expected. */
  add(sequence: Sequence, source: KvRows, row: number, followers: number): void {
    const count = this.#sequences.length;
    this.#reserve(count + 1, followers);
    this.#rows.copyRow(source, row, count);
    this.#sequences.push(sequence);
  }

  /** Removes a sequence; the last one takes its row. */
  remove(sequence: Sequence): void {
    const row = this.#sequences.indexOf(sequence);
    const last = this.#sequences.pop();
    if (last === undefined || last === sequence) return;
    this.#sequences[row] = last;
    this.#rows.copyRow(this.#rows, this.#sequences.length, row);
  }

  /** Hands sequences that have become too long for this group to `place`, and removes them. */
  moveOversized(place: (sequence: Sequence, source: KvRows, row: number) => void): void {
    for (const [row, sequence] of [...this.#sequences.entries()].toReversed()) {
      if (this.#rows.length(row) < this.limit) continue;
      place(sequence, this.#rows, row);
      this.remove(sequence);
    }
  }

  /** Draws one more token for every sequence; one that fails ends without. */
  async step(): Promise<readonly DrawnToken[]> {
    const sequences = [...this.#sequences];
    const drawn: DrawnToken[] = [];
    const draw = (output: DecoderOutput, first: number): void => {
      for (const [row] of output.logprobSum.entries()) {
        const sequence = at(sequences, first + row);
        const token = sequence.advance(decodedRow(output, row));
        if (token !== undefined) drawn.push({ sequence, ...token });
      }
    };
    const input = {
      tokens: Int32Array.from(sequences, ({ lastToken }) => lastToken),
      newTokens: 1,
      cache: this.#rows,
      adapters: this.#join(this.#adapters()),
      adapterIds: sequences.map(({ adapter }) => adapter.id),
      head: sequences.map(({ options }, row) => ({ row, temperature: options.temperature })),
    };
    await this.#decoder.run(input, draw);
    return drawn;
  }

  /** The adapters in use, in an order that does not depend on arrival. */
  #adapters(): readonly FrozenAdapter[] {
    const byId = new Map(this.#sequences.map(({ adapter }) => [adapter.id, adapter]));
    return [...byId.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** Makes room for a number of rows; if it is short, also for more that are expected. */
  #reserve(rows: number, more: number): void {
    const { rowCapacity } = this.#rows;
    if (rows <= rowCapacity) return;
    const grown = Math.min(this.#maxRows, Math.max(rows + more, rowCapacity * 2));
    const old = this.#rows;
    this.#rows = old.resized(grown, this.#sequences.length);
    old.release();
  }
}
