import type { Automaton, State } from "./automaton.js";
import type { TokenTable } from "./token-table.js";

/** The tokens that may come next. */
export interface TokenMask {
  /** One bit per token of the vocabulary. */
  readonly bits: Uint32Array;
  /** The same as an ascending list, if there are few. */
  readonly few: Int32Array | null;
  readonly count: number;
}

/** Up to so many tokens, going through a list is faster than looking at every token of the vocabulary. */
const fewTokens = 1024;

/** Whether a token may come next. */
export function isAllowed({ bits }: TokenMask, token: number): boolean {
  return (((bits[token >>> 5] ?? 0) >>> (token & 31)) & 1) === 1;
}

/** Finds all tokens that an automaton accepts from a state. */
export function tokenMask(automaton: Automaton, state: State, table: TokenTable): TokenMask {
  const { ids, bytes, starts, shared, vocabSize } = table;
  const bits = new Uint32Array(Math.ceil(vocabSize / 32));
  const allowed: number[] = [];
  let count = 0;
  // States after each byte of the current token; tokens with a common prefix continue from there.
  const path: State[] = [state];
  // Tokens with a longer common prefix with the one before fail where that one failed.
  let failedAt = Infinity;
  for (let index = 0; index < ids.length; index++) {
    const common = shared[index] ?? 0;
    if (common > failedAt) continue;
    const start = starts[index] ?? 0;
    const length = (starts[index + 1] ?? 0) - start;
    let depth = common;
    let reached: State | null = path[depth] ?? null;
    while (reached !== null && depth < length) {
      reached = automaton.step(reached, bytes[start + depth] ?? 0);
      if (reached === null) break;
      depth += 1;
      path[depth] = reached;
    }
    failedAt = reached === null ? depth : Infinity;
    if (reached === null) continue;
    const id = ids[index] ?? 0;
    bits[id >>> 5] = (bits[id >>> 5] ?? 0) | (1 << (id & 31));
    count += 1;
    if (count <= fewTokens) allowed.push(id);
  }
  const few = count > fewTokens ? null : Int32Array.from(allowed).toSorted();
  return { bits, few, count };
}
