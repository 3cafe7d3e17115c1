import { toPlain } from "../store/sql.js";

/** A pass as the engine had it, as far as it is shown. */
export interface ShownPass {
  readonly data: readonly {
    readonly tokens: ArrayLike<number>;
    readonly inputs: Readonly<
      Record<string, { readonly data: ArrayLike<number>; readonly shape: readonly number[] }>
    >;
  }[];
  readonly outputs: readonly { readonly logprobs: ArrayLike<number> }[];
}

/** Exhibits that are ready to be kept. */
export interface PreparedExhibits {
  readonly heads: readonly ExhibitHead[];
  readonly contents: readonly ExhibitContent[];
  /** Of how many they were chosen. */
  readonly seen: number;
}

/** The examples of a pass that are kept. */
export function dataExhibits(pass: ShownPass, keepsAll: boolean, seed: string): PreparedExhibits {
  const facts = pass.data.map((_, index) => factsOf(pass, index));
  const kept = keepsAll ? facts.map((_, index) => index) : chooseExhibits(facts, seed);
  return {
    heads: kept.map((index): ExhibitHead => {
      const { nll, advantage, trainedCount } = facts[index]!;
      return {
        group: null,
        index,
        reward: null,
        advantage: advantage === null ? null : toPlain(advantage),
        nll: nll === null ? null : toPlain(nll),
        tokenCount: pass.data[index]!.tokens.length + 1,
        trainedCount,
        stopReason: null,
      };
    }),
    contents: kept.map((index) => contentOf(pass, index)),
    seen: pass.data.length,
  };
}

function factsOf(
  { data, outputs }: ShownPass,
  index: number,
): Candidate & { readonly trainedCount: number } {
  const inputs = data[index]!.inputs;
  const logprobs = outputs[index]?.logprobs ?? [];
  const weights = inputs["weights"]?.data;
  const advantages = inputs["advantages"]?.data;
  let loss = 0;
  let total = 0;
  let trainedCount = 0;
  let advantage: number | null = null;
  for (let place = 0; place < logprobs.length; place++) {
    const one = advantages?.[place] ?? 0;
    const weight = weights?.[place] ?? (advantages ? Number(one !== 0) : 1);
    if (Math.abs(one) > Math.abs(advantage ?? 0)) advantage = one;
    if (weight === 0) continue;
    trainedCount++;
    loss -= weight * logprobs[place]!;
    total += weight;
  }
  return { nll: total === 0 ? null : loss / total, reward: null, advantage, trainedCount };
}

/** The whole sequence: what the model reads, and after it the last token that it is to say. */
function contentOf({ data, outputs }: ShownPass, index: number): ExhibitContent {
  const { tokens, inputs } = data[index]!;
  const targets = inputs["target_tokens"];
  const isPlain = targets !== undefined && targets.data.length === tokens.length;
  const length = tokens.length + 1;
  const sequence = new Int32Array(length);
  for (let place = 0; place < tokens.length; place++) sequence[place] = tokens[place]!;
  // Targets with alternatives are not a sequence; their places are shown without one.
  sequence[tokens.length] = isPlain ? targets.data[tokens.length - 1]! : tokens[tokens.length - 1]!;
  const shifted = (values: ArrayLike<number> | undefined): Float32Array | undefined => {
    if (!values || values.length !== tokens.length) return undefined;
    const column = new Float32Array(length).fill(Number.NaN, 0, 1);
    column.set(values, 1);
    return column;
  };
  const isSequence = isPlain || targets === undefined;
  return {
    columns: {
      tokens: isSequence ? sequence : sequence.slice(0, tokens.length),
      ...(isSequence && {
        weight: shifted(inputs["weights"]?.data),
        logprob: shifted(outputs[index]?.logprobs),
        samplerLogprob: shifted(inputs["logprobs"]?.data),
        advantage: shifted(inputs["advantages"]?.data),
      }),
    },
  };
}

/** What the choice goes by. */
export interface Candidate {
  readonly nll: number | null;
  readonly reward: number | null;
  readonly advantage: number | null;
}

/** Exhibits of a step that are kept unless everything is. */
export const keptPerStep = 8;

/**
 * Which of many to keep: the first, the one with the worst nll, best and worst reward, the largest advantage
 * either way, and for the rest an even mix that is the same for the same seed. In order.
 */
export function chooseExhibits(candidates: readonly Candidate[], seed: string): number[] {
  if (candidates.length <= keptPerStep) return candidates.map((_, index) => index);
  const most = (score: (candidate: Candidate) => number | null): number => {
    let found = -1;
    let best = Number.NEGATIVE_INFINITY;
    for (const [index, candidate] of candidates.entries()) {
      const value = score(candidate);
      if (value !== null && value > best) {
        best = value;
        found = index;
      }
    }
    return found;
  };
  const chosen = new Set([
    0,
    most(({ nll }) => nll),
    most(({ reward }) => reward),
    most(({ reward }) => (reward !== null ? -reward : null)),
    most(({ advantage }) => (advantage === null ? null : Math.abs(advantage))),
  ]);
  chosen.delete(-1);
  let state = hash(seed);
  while (chosen.size < keptPerStep) {
    state = next(state);
    chosen.add(state % candidates.length);
  }
  return [...chosen].toSorted((a, b) => a - b);
}

function hash(text: string): number {
  let state = 2166136261;
  for (const character of text) {
    state = Math.imul(state ^ (character.codePointAt(0) ?? 0), 16777619) >>> 0;
  }
  return state;
}

function next(state: number): number {
  let mixed = (state + 0x9e3779b9) >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b) >>> 0;
  return (mixed ^ (mixed >>> 13)) >>> 0;
}

/*
 * Exhibits that came together are one content: the length of a header, the header as JSON, then columns of
 * numbers of 4 bytes. The header says which columns each exhibit has and where they begin, so that one can be
 * read without the others.
 */

/** A sequence of tokens and what is known of each. Columns are as long as `tokens`. */
export interface TokenColumns {
  readonly tokens: ArrayLike<number>;
  /** Weight in the loss. */
  readonly weight?: ArrayLike<number> | undefined;
  /** Logprob of the trainer, or of the sampler where it made the token. */
  readonly logprob?: ArrayLike<number> | undefined;
  readonly samplerLogprob?: ArrayLike<number> | undefined;
  readonly advantage?: ArrayLike<number> | undefined;
  /** Entropy of what could have come in its place. */
  readonly entropy?: ArrayLike<number> | undefined;
  /** 1 where a token was sampled. */
  readonly mask?: ArrayLike<number> | undefined;
}

/** The name of a column. */
export type TokenColumn = keyof TokenColumns;

/** One exhibit: its tokens, and whatever else was said. */
export interface ExhibitContent {
  readonly columns: TokenColumns;
  readonly extra?: Readonly<Record<string, unknown>> | undefined;
}

/** What lists show; kept apart from the content. */
export interface ExhibitHead {
  readonly group: number | null;
  readonly index: number;
  readonly reward: number | string | null;
  readonly advantage: number | string | null;
  readonly nll: number | string | null;
  readonly tokenCount: number;
  readonly trainedCount: number;
  readonly stopReason: string | null;
}

interface Header {
  readonly exhibits: readonly {
    /** Name, first number, length. */
    readonly columns: readonly (readonly [TokenColumn, number, number])[];
    readonly extra?: Readonly<Record<string, unknown>> | undefined;
  }[];
}

/** Many exhibits as bytes. */
export function packExhibits(exhibits: readonly ExhibitContent[]): Uint8Array {
  let length = 0;
  const parts: { name: TokenColumn; data: ArrayLike<number>; offset: number }[] = [];
  const header: Header = {
    exhibits: exhibits.map(({ columns, extra }) => ({
      columns: Object.entries(columns).flatMap(([name, given]) => {
        const data = given as ArrayLike<number> | undefined;
        if (!data) return [];
        const part = { name: name as TokenColumn, data, offset: length };
        parts.push(part);
        length += data.length;
        return [[part.name, part.offset, data.length] as const];
      }),
      ...(extra ? { extra } : {}),
    })),
  };
  const json = Buffer.from(JSON.stringify(header));
  const start = Math.ceil((json.length + 4) / 8) * 8;
  const bytes = new Uint8Array(start + length * 4);
  new DataView(bytes.buffer).setUint32(0, json.length, true);
  bytes.set(json, 4);
  for (const { name, data, offset } of parts) {
    const view = name === "tokens" ? Int32Array : Float32Array;
    new view(bytes.buffer, start + offset * 4, data.length).set(data);
  }
  return bytes;
}

/** One exhibit of a content; undefined when there are fewer. */
export function unpackExhibit(bytes: Uint8Array, index: number): ExhibitContent | undefined {
  const whole = (bytes.byteOffset % 8 === 0 ? bytes : bytes.slice()) as Uint8Array<ArrayBuffer>;
  const jsonLength = new DataView(whole.buffer, whole.byteOffset).getUint32(0, true);
  const json = Buffer.from(whole.buffer, whole.byteOffset + 4, jsonLength).toString();
  const entry = (JSON.parse(json) as Header).exhibits[index];
  if (!entry) return undefined;
  const start = whole.byteOffset + Math.ceil((jsonLength + 4) / 8) * 8;
  const columns = entry.columns.map(([name, offset, length]) => {
    const view = name === "tokens" ? Int32Array : Float32Array;
    return [name, new view(whole.buffer, start + offset * 4, length)] as const;
  });
  return {
    columns: { tokens: new Int32Array(0), ...Object.fromEntries(columns) },
    ...(entry.extra ? { extra: entry.extra } : {}),
  };
}
