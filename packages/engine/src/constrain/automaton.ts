import { EngineError } from "../errors.js";
import { at } from "../util/arrays.js";
import type { Grammar, Rule } from "./grammar.js";

/** The continuation of a rule: a position in a sequence or a count of a repetition, and then `parent`. */
interface Frame {
  readonly id: number;
  readonly rule: number;
  readonly place: number;
  readonly parent: Frame;
}

/** A text or a byte that may come next, with the number of its bytes already read. */
interface Leaf {
  readonly id: number;
  readonly rule: number;
  readonly offset: number;
  readonly frame: Frame;
}

/** A position in a grammar after some text; equal positions are the same object. */
export interface State {
  /** The text may end here. */
  readonly canEnd: boolean;
  /** Nothing may follow. */
  readonly mustEnd: boolean;
}

interface KnownState extends State {
  readonly leaves: readonly Leaf[];
  /** By byte; null where the byte is not allowed, absent until it is first looked up. */
  readonly next: (KnownState | null | undefined)[];
}

interface Prepared {
  readonly rule: Rule;
  readonly bytes: Uint8Array;
  /** One entry per byte, for rules of one byte. */
  readonly isIn: Uint8Array;
}

/** Number of states to cache before the cache is cleared; states in use stay valid. */
const maxStates = 20_000;

/**
 * Follows texts through a grammar byte by byte.
 *
 * A pushdown automaton that is made deterministic lazily: a state is the set of all positions
 * that the text so far may have reached, and stacks share their tails. States and steps are cached, so
 * that after a while a step is an array lookup. The last part of a sequence leaves nothing on the stack,
 * so rules that end in themselves run in constant memory.
 */
export class Automaton {
  readonly start: State;
  readonly #grammar: Grammar;
  readonly #prepared: (Prepared | undefined)[];
  readonly #longest: number;
  readonly #bottom: Frame;
  #frames = new Map<number, Map<number, Frame>>();
  #leaves = new Map<number, Map<number, Leaf>>();
  #states = new Map<string, KnownState>();
  #nextId = 1;

  constructor(grammar: Grammar) {
    this.#grammar = grammar;
    this.#prepared = Array.from({ length: grammar.rules.length });
    this.#longest = grammar.rules.reduce(
      (most, rule) => Math.max(most, rule.kind === "text" ? maxBytesOf(rule.text) + 1 : 1),
      1,
    );
    const bottom = { id: 0, rule: -1, place: 0 };
    this.#bottom = Object.assign(bottom, { parent: bottom as unknown as Frame });
    const reached = new Reached();
    unlessTooDeep(() => this.#enter(grammar.start, this.#bottom, reached));
    this.start = this.#intern(reached);
  }

  /** Number of cached states. */
  get size(): number {
    return this.#states.size;
  }

  /** The state after a byte; null if the byte is not allowed. */
  step(state: State, byte: number): State | null {
    const known = state as KnownState;
    const next = known.next[byte];
    if (next !== undefined) return next;
    const found = unlessTooDeep(() => this.#find(known, byte));
    known.next[byte] = found;
    return found;
  }

  /** A rule, prepared when a text first reaches it: most are never reached. */
  #rule(index: number): Prepared {
    return (this.#prepared[index] ??= prepare(at(this.#grammar.rules, index)));
  }

  #find(state: KnownState, byte: number): KnownState | null {
    const reached = new Reached();
    for (const { rule, offset, frame } of state.leaves) {
      const {
        bytes,
        isIn,
        rule: { kind },
      } = this.#rule(rule);
      if (kind === "byte" ? isIn[byte] !== 1 : bytes[offset] !== byte) continue;
      if (offset + 1 < bytes.length) reached.leaves.add(this.#leaf(rule, offset + 1, frame));
      else this.#resume(frame, reached);
    }
    return reached.leaves.size === 0 && !reached.isEnd ? null : this.#intern(reached);
  }

  /** Collects all terminals that a rule can begin with. */
  #enter(index: number, frame: Frame, reached: Reached): void {
    if (reached.wasEntered(index, frame)) return;
    const { rule, bytes } = this.#rule(index);
    switch (rule.kind) {
      case "text":
        if (bytes.length === 0) this.#resume(frame, reached);
        else reached.leaves.add(this.#leaf(index, 0, frame));
        break;
      case "byte":
        reached.leaves.add(this.#leaf(index, 0, frame));
        break;
      case "sequence":
        this.#goOn(index, 0, frame, reached);
        break;
      case "choice":
        for (const item of rule.items) this.#enter(item, frame, reached);
        break;
      case "repeat":
        this.#goOn(index, 0, frame, reached);
        break;
    }
  }

  /** Collects all terminals that can follow a frame's rule. */
  #resume(frame: Frame, reached: Reached): void {
    if (frame === this.#bottom) reached.isEnd = true;
    else if (!reached.wasResumed(frame)) {
      this.#goOn(frame.rule, frame.place, frame.parent, reached);
    }
  }

  #goOn(index: number, place: number, parent: Frame, reached: Reached): void {
    const { rule } = this.#rule(index);
    if (rule.kind === "sequence") {
      const isLast = place + 1 >= rule.items.length;
      if (place >= rule.items.length) this.#resume(parent, reached);
      else {
        const rest = isLast ? parent : this.#frame(index, place + 1, parent);
        this.#enter(at(rule.items, place), rest, reached);
      }
    } else if (rule.kind === "repeat") {
      if (place >= rule.min) this.#resume(parent, reached);
      if (rule.max !== null && place >= rule.max) return;
      // Without an upper bound, counting ends at the lower one.
      const count = rule.max === null ? Math.min(place + 1, rule.min) : place + 1;
      this.#enter(rule.item, this.#frame(index, count, parent), reached);
    }
  }

  #frame(rule: number, place: number, parent: Frame): Frame {
    const key = rule * 2 ** 30 + place;
    const byRule = entryOf(this.#frames, parent.id, () => new Map<number, Frame>());
    return entryOf(byRule, key, () => ({ id: this.#nextId++, rule, place, parent }));
  }

  #leaf(rule: number, offset: number, frame: Frame): Leaf {
    const key = rule * this.#longest + offset;
    const byRule = entryOf(this.#leaves, frame.id, () => new Map<number, Leaf>());
    return entryOf(byRule, key, () => ({ id: this.#nextId++, rule, offset, frame }));
  }

  #intern({ leaves, isEnd }: Reached): KnownState {
    const sorted = [...leaves].toSorted((a, b) => a.id - b.id);
    const key = `${isEnd ? "." : ""}${sorted.map(({ id }) => id).join(",")}`;
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    if (this.#states.size >= maxStates) this.#forget();
    const made = { canEnd: isEnd, mustEnd: sorted.length === 0, leaves: sorted, next: [] };
    this.#states.set(key, made);
    return made;
  }

  #forget(): void {
    this.#states = new Map();
    this.#frames = new Map();
    this.#leaves = new Map();
  }
}

/** Positions after one byte, collected one by one. */
class Reached {
  readonly leaves = new Set<Leaf>();
  isEnd = false;
  readonly #entered = new Map<Frame, Set<number>>();
  readonly #resumed = new Set<Frame>();

  wasEntered(rule: number, frame: Frame): boolean {
    const rules = entryOf(this.#entered, frame, () => new Set<number>());
    if (rules.has(rule)) return true;
    rules.add(rule);
    if (this.#entered.size > maxStacks || this.leaves.size > maxLeaves) throw tooAmbiguous();
    return false;
  }

  wasResumed(frame: Frame): boolean {
    if (this.#resumed.has(frame)) return true;
    this.#resumed.add(frame);
    return false;
  }
}

/** Limit on stacks after one byte; a left-recursive grammar would produce them without end. */
const maxStacks = 1500;

/** Limit on terminals that may come next; each is checked for every byte. */
const maxLeaves = 4096;

/** Nested rules are followed recursively, so that depth is limited by the call stack. */
function unlessTooDeep<T>(follow: () => T): T {
  try {
    return follow();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new EngineError(
      "invalid_constraint",
      "the constraint is nested too deeply; make it simpler.",
    );
  }
}

function tooAmbiguous(): EngineError {
  return new EngineError(
    "invalid_constraint",
    "the constraint allows too many ways to read the same text, or begins with itself; make it simpler.",
  );
}

const encoder = new TextEncoder();

function prepare(rule: Rule): Prepared {
  return {
    rule,
    bytes: rule.kind === "text" ? encoder.encode(rule.text) : new Uint8Array(),
    isIn: rule.kind === "byte" ? membership(rule.ranges) : new Uint8Array(),
  };
}

/** A unit of UTF-16 takes three bytes at most. */
function maxBytesOf(text: string): number {
  return 3 * text.length;
}

function membership(ranges: readonly (readonly [number, number])[]): Uint8Array {
  const isIn = new Uint8Array(256);
  for (const [first, last] of ranges) isIn.fill(1, first, last + 1);
  return isIn;
}

function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
