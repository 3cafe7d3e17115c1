import fc from "fast-check";
import type { AdamOptions } from "@tinker-ts/engine";

/** Something that a client asks for. */
export type Act =
  | {
      readonly act: "pass";
      readonly isBackward: boolean;
      readonly lossFn: string;
      readonly config: Readonly<Record<string, number>>;
      readonly rows: readonly Row[];
    }
  | { readonly act: "step"; readonly adam: Required<AdamOptions> }
  | {
      readonly act: "save";
      readonly isSampler: boolean;
      readonly name: string;
      readonly overwrite: boolean;
    }
  | ({ readonly act: "load"; readonly which: number; readonly optimizer: boolean } & Source)
  | ({ readonly act: "sample"; readonly which: number; readonly seed: number } & Source)
  /** Another model is made, trained and unloaded under the eyes of this one. */
  | { readonly act: "bystander" }
  /** A request that nobody can decode, under a number of its own. */
  | { readonly act: "mistake" };

/** What is loaded or sampled from: the saved state that `which` meant when it was asked for. */
interface Source {
  readonly path?: string | undefined;
}

/** One datum: tokens, and two numbers for every position. */
export interface Row {
  readonly tokens: readonly number[];
  readonly first: number;
  readonly second: number;
}

/** Requests that are sent together, how they are sent, and what happens to the server then. */
export interface Round {
  readonly acts: readonly Act[];
  /** `hangup`: the connection is closed before the answer; the client asks again, as always. */
  readonly delivery: "once" | "twice" | "hangup";
  /** In which passes are sent. */
  readonly dialect: "json" | "proto";
  /** The client would like its results along with the acceptance. */
  readonly isHeld: boolean;
  /** `acceptance`: the first request cannot be accepted until it is sent again; `commit`: its outcome cannot be committed. */
  readonly fault: "none" | "acceptance" | "commit";
  /**
   * - `killed`: when everything is done
   * - `killed under way`: after so many turns of the event loop
   * - `stopped`: in an orderly way
   */
  readonly end: "goes on" | "killed" | "killed under way" | "stopped";
  readonly turns: number;
}

/** A life of a model and of its server. */
export interface Program {
  /** States are written every few operations, or never. */
  readonly maxJournalBytes: number;
  readonly rounds: readonly Round[];
}

const extreme = fc.constantFrom(1, -1, 0.5, 0, 2, 1e-30, -110, -1000, 90, 1e10, -1e20, 1e30, 3e38);
const mild = fc.constantFrom(1, -1, 0.5, -2);
const numbers = fc.oneof({ weight: 3, arbitrary: mild }, { weight: 2, arbitrary: extreme });

const row: fc.Arbitrary<Row> = fc.record({
  tokens: fc.array(fc.integer({ min: 0, max: 309 }), { minLength: 2, maxLength: 5 }),
  first: numbers,
  second: numbers,
});

const clips = fc.record({
  clip_low_threshold: fc.constantFrom(0, 0.8, 1e30),
  clip_high_threshold: fc.constantFrom(0, 1.2, 4, 1e38),
});
const configs: Readonly<Record<string, fc.Arbitrary<Record<string, number>>>> = {
  cross_entropy: fc.constant({}),
  importance_sampling: fc.constant({}),
  ppo: fc.oneof(fc.constant({}), clips),
  cispo: fc.oneof(fc.constant({}), clips),
  dro: fc.oneof(fc.constant({}), fc.record({ beta: fc.constantFrom(0, 0.05, 1e20) })),
};

const pass: fc.Arbitrary<Act> = fc
  .constantFrom("cross_entropy", "importance_sampling", "ppo", "cispo", "dro")
  .chain((lossFn) =>
    fc.record({
      act: fc.constant("pass" as const),
      isBackward: fc.constantFrom(true, true, true, false),
      lossFn: fc.constant(lossFn),
      config: configs[lossFn]!,
      rows: fc.array(row, { minLength: 1, maxLength: 2 }),
    }),
  );

/** A ratio beyond every float: its metrics are infinite and its gradient is not a number. */
const poison: Act = {
  act: "pass",
  isBackward: true,
  lossFn: "ppo",
  config: {},
  rows: [{ tokens: [1, 2, 3], first: -1000, second: 1 }],
};
const lesson: Act = {
  act: "pass",
  isBackward: true,
  lossFn: "cross_entropy",
  config: {},
  rows: [{ tokens: [7, 8, 9], first: 1, second: 1 }],
};
const plain = { learningRate: 0.1, beta1: 0.9, beta2: 0.95, eps: 1e-12, weightDecay: 0 };

/** An ordinary step, which shows what gradients were waiting. */
export const plainStep = {
  act: "step",
  adam: { ...plain, gradClipNorm: 0 },
} as const satisfies Act;

const step: fc.Arbitrary<Act> = fc.record({
  act: fc.constant("step" as const),
  adam: fc.record({
    learningRate: fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(0.01, 0.1) },
      { weight: 1, arbitrary: fc.constantFrom(0, 10, 1e10, 1e18, 1e20, 1e38, 1e300) },
    ),
    beta1: fc.constantFrom(0.9, 0.9, 0, 0.99999999, 1),
    beta2: fc.constantFrom(0.95, 0.95, 0, 0.99999999),
    eps: fc.constantFrom(1e-12, 1e-12, 0, 1, 1e300),
    weightDecay: fc.constantFrom(0, 0, 0.1, 1e30),
    gradClipNorm: fc.constantFrom(0, 0, 1, 1e-30, 1e300),
  }),
});

const rest: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    act: fc.constant("save" as const),
    isSampler: fc.boolean(),
    name: fc.constantFrom("a", "b"),
    overwrite: fc.boolean(),
  }),
  fc.record({ act: fc.constant("load" as const), which: fc.nat(3), optimizer: fc.boolean() }),
  fc.record({ act: fc.constant("sample" as const), which: fc.nat(3), seed: fc.nat(99) }),
  fc.constant({ act: "bystander" as const }),
  fc.constant({ act: "mistake" as const }),
);

const round: fc.Arbitrary<Round> = fc.record({
  acts: fc.array(
    fc.oneof(
      { weight: 6, arbitrary: pass },
      { weight: 1, arbitrary: fc.constant(poison) },
      { weight: 6, arbitrary: step },
      { weight: 4, arbitrary: rest },
    ),
    { minLength: 1, maxLength: 4 },
  ),
  delivery: fc.constantFrom("once", "twice", "hangup"),
  dialect: fc.constantFrom("json", "proto"),
  isHeld: fc.boolean(),
  fault: fc.constantFrom("none", "none", "none", "none", "acceptance", "commit"),
  end: fc.constantFrom("goes on", "goes on", "killed", "killed under way", "stopped"),
  turns: fc.nat(40),
});

/** Lives of all kinds. */
export const programs: fc.Arbitrary<Program> = fc.record({
  maxJournalBytes: fc.constantFrom(200, 2 ** 28),
  rounds: fc.array(round, { minLength: 1, maxLength: 6 }),
});

const calm = {
  delivery: "once",
  dialect: "proto",
  isHeld: true,
  fault: "none",
  end: "goes on",
  turns: 0,
} as const;
const stepWith = (adam: object): Act => ({ act: "step", adam: { ...plainStep.adam, ...adam } });
const life = (...rounds: Partial<Round>[]): Program => ({
  maxJournalBytes: 2 ** 28,
  rounds: rounds.map((given) => ({ acts: [], ...calm, ...given })),
});

/** Lives that ended badly once. */
export const knownPrograms: readonly Program[] = [
  // The refused step dropped the gradient in memory and not in the journal.
  life({ acts: [poison, plainStep, lesson, plainStep], end: "killed" }),
  // Steps were taken that could not be told of.
  life({ acts: [lesson, stepWith({ learningRate: 1e20 }), stepWith({ learningRate: 1e38 })] }),
  life({ acts: [lesson, stepWith({ learningRate: 1e300 }), stepWith({ weightDecay: 1e30 })] }),
  // The model was kept although what it had done was not committed.
  life({ acts: [lesson], fault: "commit" }, { acts: [lesson, plainStep] }),
  life({ acts: [lesson] }, { acts: [plainStep], fault: "commit" }),
  life({ acts: [poison] }, { acts: [plainStep], fault: "commit" }, { acts: [plainStep] }),
  // The engine begins with a pass while it is being accepted.
  life({ acts: [lesson] }, { acts: [lesson], fault: "acceptance" }, { acts: [plainStep] }),
  // A second attempt took the place of the first, whose outcome could not be committed together with it.
  life({ acts: [lesson] }, { acts: [plainStep], delivery: "twice", fault: "commit" }),
  life({ acts: [plainStep], delivery: "twice", isHeld: false, fault: "commit" }),
];
