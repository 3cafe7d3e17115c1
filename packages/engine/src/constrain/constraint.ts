import { EngineError } from "../errors.js";
import { Automaton, type State } from "./automaton.js";
import type { Grammar } from "./grammar.js";
import { isAllowed, tokenMask, type TokenMask } from "./token-mask.js";
import type { TokenTable } from "./token-table.js";

/** Number of masks to cache per grammar: at 150,000 tokens each takes 19 kB. */
const maxMasks = 512;

/** A grammar over the tokens of a model; masks are computed once per state that a text reaches. */
export class Constraint {
  readonly #automaton: Automaton;
  readonly #table: TokenTable;
  readonly #bytesOf: (token: number) => Uint8Array;
  /** Least recently used first. */
  readonly #masks = new Map<State, TokenMask>();

  constructor(grammar: Grammar, table: TokenTable, bytesOf: (token: number) => Uint8Array) {
    this.#automaton = new Automaton(grammar);
    this.#table = table;
    this.#bytesOf = bytesOf;
  }

  /** Follows one sample from its beginning. */
  begin(): ConstrainedText {
    return new ConstrainedText(this, this.#automaton.start);
  }

  /** The tokens allowed in a state. */
  maskAt(state: State): TokenMask {
    const known = this.#masks.get(state);
    const mask = known ?? tokenMask(this.#automaton, state, this.#table);
    this.#masks.delete(state);
    this.#masks.set(state, mask);
    const [oldest] = this.#masks.keys();
    if (this.#masks.size > maxMasks && oldest !== undefined) this.#masks.delete(oldest);
    return mask;
  }

  /** The state after a token. */
  after(state: State, token: number): State {
    let reached: State | null = state;
    for (const byte of this.#bytesOf(token)) {
      reached = reached === null ? null : this.#automaton.step(reached, byte);
    }
    if (reached !== null) return reached;
    throw new Error(`token ${token} was drawn although the constraint does not allow it`);
  }
}

/** The position of a constrained sample in its grammar. */
export class ConstrainedText {
  readonly #constraint: Constraint;
  #state: State;

  constructor(constraint: Constraint, state: State) {
    this.#constraint = constraint;
    this.#state = state;
  }

  /** Whether the text is complete and may end. */
  get canEnd(): boolean {
    return this.#state.canEnd;
  }

  /** Whether the text is complete and nothing may follow. */
  get mustEnd(): boolean {
    return this.#state.mustEnd;
  }

  /** The tokens of text that may come next. */
  mask(): TokenMask {
    const mask = this.#constraint.maskAt(this.#state);
    if (mask.count > 0 || this.#state.canEnd) return mask;
    throw new EngineError(
      "constraint_dead_end",
      "no token of the model's vocabulary can continue the text as the constraint demands.",
    );
  }

  /** Advances by a token of text. */
  push(token: number): void {
    this.#state = this.#constraint.after(this.#state, token);
  }

  /** Whether a token of text may come next. */
  allows(token: number): boolean {
    return isAllowed(this.mask(), token);
  }
}
