import { EngineError } from "../errors.js";
import { Constraint } from "./constraint.js";
import type { Grammar } from "./grammar.js";
import { makeTokenTable, type TokenTable } from "./token-table.js";

/** Number of grammars to cache. */
const kept = 16;

/** The constraints of a model, cached with their masks because programs reuse their schemas. */
export class Constraints {
  readonly #vocabSize: number;
  readonly #bytesOf: (token: number) => Uint8Array;
  readonly #special: ReadonlySet<number>;
  /** The constraint, or the error that making it failed with. Least recently used first. */
  readonly #known = new Map<string, Constraint | EngineError>();
  /** By the special tokens that count as text. */
  readonly #tables = new Map<string, TokenTable>();

  /** Special tokens are not text, unless a constraint allows them. */
  constructor(
    vocabSize: number,
    bytesOf: (token: number) => Uint8Array,
    special: ReadonlySet<number>,
  ) {
    this.#vocabSize = vocabSize;
    this.#bytesOf = bytesOf;
    this.#special = special;
  }

  /** The constraint of a grammar. */
  get(given: Grammar | string, textTokens: readonly number[]): Constraint {
    const text = typeof given === "string" ? given : JSON.stringify(given);
    const key = `${textTokens.join(",")} ${text}`;
    const constraint = this.#known.get(key) ?? this.#make(text, textTokens);
    this.#known.delete(key);
    this.#known.set(key, constraint);
    const [oldest] = this.#known.keys();
    if (this.#known.size > kept && oldest !== undefined) this.#known.delete(oldest);
    if (constraint instanceof EngineError) throw constraint;
    return constraint;
  }

  /** A failure is cached as well, because it takes as long to compute as a constraint. */
  #make(text: string, textTokens: readonly number[]): Constraint | EngineError {
    try {
      const grammar = JSON.parse(text) as Grammar;
      return new Constraint(grammar, this.#table(textTokens), this.#bytesOf);
    } catch (error) {
      if (error instanceof EngineError) return error;
      throw error;
    }
  }

  #table(textTokens: readonly number[]): TokenTable {
    const key = textTokens.join(",");
    const known = this.#tables.get(key);
    if (known !== undefined) return known;
    const nothing = new Uint8Array();
    const isText = (token: number): boolean =>
      !this.#special.has(token) || textTokens.includes(token);
    const table = makeTokenTable(this.#vocabSize, (token) =>
      isText(token) ? this.#bytesOf(token) : nothing,
    );
    if (this.#tables.size >= kept) this.#tables.clear();
    this.#tables.set(key, table);
    return table;
  }
}
