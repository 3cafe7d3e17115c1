import { loadTokenizer } from "@tinker-ts/hub";
import { EngineError } from "../errors.js";
import { NativeCalls } from "../execution/native-calls.js";
import type { ModelConfig } from "../files/model-config.js";
import type { WeightSource } from "../files/weight-source.js";
import { ModelRuntime } from "../model/model-runtime.js";
import { loadModelWeights, type LoadProgress } from "../model/model-weights.js";
import { Sampler } from "../sample/sampler.js";
import type { TokenText } from "../sample/stop-matcher.js";
import { MergedWeights } from "../train/merged-weights.js";
import { trainingBudget, type TrainingBudget } from "../train/training-budget.js";
import type { FairTurns } from "../util/fair-turns.js";
import type { MemoryPlan } from "./memory-plan.js";
import type { WorkerSettings } from "./protocol.js";

/** Sequences that are decoded together at most. */
const maxRows = 64;

/** A model in memory with its sampler and what training may use. */
export class LoadedModel {
  readonly runtime: ModelRuntime;
  readonly budget: TrainingBudget;
  readonly sampler: Sampler;
  /** Of whichever adapter trains. */
  readonly merged: MergedWeights;
  readonly #folder: string | null;
  #text: Promise<TokenText> | undefined;

  private constructor(
    runtime: ModelRuntime,
    budget: TrainingBudget,
    sampler: Sampler,
    folder: string | null,
  ) {
    this.runtime = runtime;
    this.budget = budget;
    this.sampler = sampler;
    this.merged = new MergedWeights(runtime);
    this.#folder = folder;
  }

  /** Reads the weights. `folder` is where the tokenizer lies. */
  static async load(
    config: ModelConfig,
    source: WeightSource,
    folder: string | null,
    settings: WorkerSettings,
    memory: MemoryPlan,
    turns: FairTurns,
    options: { signal: AbortSignal; onProgress: (progress: LoadProgress) => void },
  ): Promise<LoadedModel> {
    const weights = await loadModelWeights(config, source, options);
    const { threads, executionProvider } = settings;
    const nativeCalls = new NativeCalls(settings.nativeCalls);
    const runtime = new ModelRuntime(config, weights, { threads, executionProvider, nativeCalls });
    const sampler = new Sampler(runtime, { ...memory, maxRows }, turns);
    const budget = trainingBudget(config, memory.activationBytes);
    return new LoadedModel(runtime, budget, sampler, folder);
  }

  get config(): ModelConfig {
    return this.runtime.config;
  }

  /** The bytes of the model's tokens, read when they are first needed. */
  tokenText(): Promise<TokenText> {
    this.#text ??= this.#loadText();
    return this.#text;
  }

  async release(): Promise<void> {
    const reason = new EngineError("model_unloaded", "the model was unloaded while it sampled.");
    await this.sampler.close(reason);
    await this.runtime.release();
  }

  async #loadText(): Promise<TokenText> {
    if (this.#folder === null) {
      throw new EngineError(
        "no_tokenizer",
        "stopStrings need the model's tokenizer, but this model was not loaded from a folder; " +
          "use stopTokens.",
      );
    }
    const tokenizer = await loadTokenizer(this.#folder);
    return { bytesOf: (token) => tokenizer.tokenBytes(token) };
  }
}
