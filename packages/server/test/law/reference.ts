import { createHash } from "node:crypto";
import type {
  Adapter,
  BaseModel,
  NamedTensors,
  ParameterExport,
  PassResult,
  SampleResult,
  Snapshot,
  StepMetrics,
} from "@tinker-ts/engine";
import { expect } from "vitest";
import type { Act, Row } from "./programs.js";

/** How an act must end. */
export type Expected =
  | { readonly pass: PassResult }
  | { readonly step: StepMetrics }
  | { readonly sample: SampleResult }
  | { readonly refused: string }
  | { readonly done: true };

interface Saved {
  readonly state: ParameterExport;
  readonly snapshot: Snapshot;
}

/**
 * What the law demands: the engine by itself, without queue, journal or disk. What it refuses has changed
 * nothing, unless it says that the gradient is dropped.
 */
export class Reference {
  readonly #base: BaseModel;
  readonly #adapter: Adapter;
  readonly #saved = new Map<string, Saved>();

  private constructor(base: BaseModel, adapter: Adapter) {
    this.#base = base;
    this.#adapter = adapter;
  }

  static async create(base: BaseModel, seed: number, rank: number): Promise<Reference> {
    return new Reference(base, await base.createAdapter({ rank, seed }));
  }

  /** The name of a saved state, such as `weights/a`. */
  saved(which: number): string | undefined {
    const names = [...this.#saved.keys()];
    return names[which % Math.max(1, names.length)];
  }

  async apply(act: Act): Promise<Expected> {
    const before = await this.#everything();
    try {
      const expected = await this.#do(act);
      if ("step" in expected) {
        expect(isFinite(await this.#adapter.exportState({ optimizer: true }))).toBe(true);
      }
      return expected;
    } catch (error) {
      if (!(error instanceof Error && "category" in error && error.category === "user")) {
        throw error;
      }
      const after = await this.#everything();
      expect(after.state).toEqual(before.state);
      if (!error.message.includes("gradient is dropped")) {
        expect(after.gradient).toEqual(before.gradient);
      }
      return { refused: error.message };
    }
  }

  /** Digests of weights and optimizer. */
  async state(): Promise<Record<string, string>> {
    return digests(await this.#adapter.exportState({ optimizer: true }));
  }

  async release(): Promise<void> {
    for (const { snapshot } of this.#saved.values()) await snapshot.release();
    await this.#adapter.release();
  }

  async #do(act: Act): Promise<Expected> {
    switch (act.act) {
      case "pass": {
        const data = act.rows.map((row) => ({
          tokens: Int32Array.from(row.tokens),
          inputs: inputsOf(act.lossFn, row, Float32Array),
        }));
        const options = { lossFn: act.lossFn, lossFnConfig: act.config };
        const pass = act.isBackward
          ? await this.#adapter.forwardBackward(data, options)
          : await this.#adapter.forward(data, options);
        return { pass };
      }
      case "step":
        return { step: await this.#adapter.optimStep(act.adam) };
      case "save": {
        const path = `${act.isSampler ? "sampler_weights" : "weights"}/${act.name}`;
        const previous = this.#saved.get(path);
        if (previous && (act.isSampler || !act.overwrite)) return { refused: "exists already" };
        const state = await this.#adapter.exportState({ optimizer: !act.isSampler });
        await previous?.snapshot.release();
        this.#saved.set(path, { state, snapshot: await this.#adapter.snapshot() });
        return { done: true };
      }
      case "load": {
        const saved = this.#saved.get(act.path ?? "");
        if (!saved) return { refused: "does not exist" };
        if (act.optimizer && !saved.state.optimizer) return { refused: "no optimizer state" };
        await this.#adapter.importState(saved.state, { optimizer: act.optimizer });
        return { done: true };
      }
      case "sample": {
        const saved = this.#saved.get(act.path ?? "");
        const sample = await this.#base.sample({
          prompt: [1, 2, 3],
          maxTokens: 4,
          seed: act.seed,
          ...(saved ? { adapter: saved.snapshot } : {}),
        });
        return { sample };
      }
      case "bystander":
        return { done: true };
      case "mistake":
        return { refused: "" };
    }
  }

  async #everything() {
    const gradient = await this.#adapter.exportGradient();
    return { state: await this.state(), gradient: digestsOf(gradient) };
  }
}

/** The inputs of a loss for one datum. */
export function inputsOf<T>(
  lossFn: string,
  { tokens, first, second }: Row,
  Floats: { from(list: readonly number[]): T },
) {
  const shape = [tokens.length];
  const all = (value: number) => ({ data: Floats.from(tokens.map(() => value)), shape });
  const target_tokens = { data: Int32Array.from(tokens), shape };
  if (lossFn === "cross_entropy") return { target_tokens, weights: all(first) };
  return { target_tokens, logprobs: all(first), advantages: all(second) };
}

/** Digests of a state by name. */
export function digests({ tensors, optimizer }: ParameterExport): Record<string, string> {
  return {
    ...digestsOf(tensors, "weights "),
    ...(optimizer
      ? {
          step: String(optimizer.step),
          ...digestsOf(optimizer.firstMoments, "first "),
          ...digestsOf(optimizer.secondMoments, "second "),
        }
      : {}),
  };
}

function digestsOf(tensors: NamedTensors, prefix = ""): Record<string, string> {
  return Object.fromEntries(
    [...tensors].map(([name, { data }]) => [
      prefix + name,
      createHash("sha256").update(data).digest("hex"),
    ]),
  );
}

function isFinite({ tensors, optimizer }: ParameterExport): boolean {
  const all = [tensors, optimizer?.firstMoments, optimizer?.secondMoments];
  return all.every((group) =>
    [...(group?.values() ?? [])].every(({ data }) => data.every(Number.isFinite)),
  );
}
