import { hash } from "node:crypto";
import { ApiError } from "../errors/api-error.js";
import { LruMap } from "../lru-map.js";
import type { AnswerShape } from "../structure/answer-grammar.js";
import { DecodingThreads } from "./decoding-threads.js";

/** A grammar as text, which travels between threads more quickly than its rules; or why there is none. */
export type MadeGrammar = { readonly grammar: string } | { readonly problem: string };

/** Owners whose grammars are made at the same time. */
const maxThreads = 2;

/** Grammars that are remembered, and how long one of these may be. */
const [maxKept, maxKeptLength] = [32, 1 << 20];

/**
 * Makes grammars of what answers must look like. Always in a thread, which ends when it takes too long: a short
 * schema can take for ever, by references to references or by a pattern of repetitions. Programs ask for the
 * same ones again, so those of late are remembered.
 */
export class Grammars {
  readonly #threads: DecodingThreads;
  readonly #known = new LruMap<string, MadeGrammar>(maxKept);

  constructor(maxWorkMs = 5000) {
    this.#threads = new DecodingThreads(maxThreads, maxWorkMs);
  }

  async make(owner: string, shape: AnswerShape): Promise<MadeGrammar> {
    const key = hash("sha256", JSON.stringify(shape));
    const known = this.#known.get(key);
    if (known) return known;
    try {
      const work = { kind: "grammar", shape } as const;
      const made = (await this.#threads.run(owner, work, [])) as MadeGrammar;
      this.#remember(key, made);
      return made;
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 413)) throw error;
      return { problem: "the schema is too much to follow; make it simpler" };
    }
  }

  #remember(key: string, made: MadeGrammar): void {
    if ("grammar" in made && made.grammar.length > maxKeptLength) return;
    this.#known.set(key, made);
  }

  close(): Promise<void> {
    return this.#threads.close();
  }
}
