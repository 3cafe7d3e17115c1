import { loadTokenizer, type Tokenizer } from "@tinker-ts/hub";
import type { WeightSource } from "@tinker-ts/hub/weights";
import { Constraint } from "../constrain/constraint.js";
import { Constraints } from "../constrain/constraints.js";
import { EngineError } from "../errors.js";
import type { ProgramOptions } from "../execution/program.js";
import type { ModelConfig } from "../model/model-config.js";
import { ModelRuntime } from "../model/model-runtime.js";
import { loadModelWeights, readLayerAgain, type LoadOptions } from "../model/model-weights.js";
import type { SampleConstraint } from "../sample/request.js";
import { Sampler } from "../sample/sampler.js";
import type { TokenText } from "../sample/stop-matcher.js";
import { MergedWeights } from "../train/merged-weights.js";
import { trainingBudget, type TrainingBudget } from "../train/training-budget.js";
import type { FairTurns } from "../util/turns.js";
import { type MemoryPlan, packedBytesOf, refuseSwapping, unusedBytes } from "./memory-plan.js";

/** Sequences that are decoded together at most. */
const maxRows = 64;

/** Where a model's weights come from. */
export interface ModelSource {
  readonly weights: WeightSource;
  /** Where the tokenizer lies. */
  readonly folder: string | null;
  /** Whether weights can be read again as long as the source is open, which it stays with the model. */
  readonly isLasting: boolean;
}

/** A model in memory with its sampler and its shares of memory. */
export class LoadedModel {
  readonly runtime: ModelRuntime;
  readonly budget: TrainingBudget;
  readonly sampler: Sampler;
  /** Of the adapter in training. */
  readonly merged: MergedWeights;
  readonly #source: Pick<ModelSource, "folder"> & { readonly close: () => Promise<void> };
  #isPacked = false;
  #tokenizer: Promise<Tokenizer> | undefined;
  #constraints: Constraints | undefined;

  private constructor(
    runtime: ModelRuntime,
    budget: TrainingBudget,
    sampler: Sampler,
    source: Pick<ModelSource, "folder"> & { readonly close: () => Promise<void> },
  ) {
    this.runtime = runtime;
    this.budget = budget;
    this.sampler = sampler;
    this.merged = new MergedWeights(runtime);
    this.#source = source;
  }

  /** Reads the weights. A source that lasts is closed with the model. */
  static async load(
    config: ModelConfig,
    { weights: source, folder, isLasting }: ModelSource,
    programs: ProgramOptions,
    memory: MemoryPlan,
    turns: FairTurns,
    options: LoadOptions,
  ): Promise<LoadedModel> {
    const close = async (): Promise<void> => {
      if (isLasting) await source.close();
    };
    const weights = await loadModelWeights(config, source, options);
    const readLayer = (layer: number) => readLayerAgain(config, source, layer);
    const runtime = new ModelRuntime(config, weights, programs, isLasting ? readLayer : undefined);
    const sampler = new Sampler(runtime, { ...memory, maxRows }, turns);
    const budget = trainingBudget(config, memory.activationBytes, runtime.device.name);
    return new LoadedModel(runtime, budget, sampler, { folder, close });
  }

  get config(): ModelConfig {
    return this.runtime.config;
  }

  /** Refuses the first sample if the copy of the weights that is packed for it would not fit. */
  prepareSampling(): void {
    if (this.#isPacked || this.runtime.resident !== undefined) return;
    const need = "sampling packs the weights once more, which takes";
    const neededBytes = packedBytesOf(this.config) - this.runtime.layers.spareBytes;
    refuseSwapping(need, neededBytes, unusedBytes());
    this.#isPacked = true;
  }

  /** Refuses a pass if the weights that sampling has released would not fit beside its packed copy. */
  prepareTraining(): void {
    const need = "training reads weights again that sampling has packed, which takes";
    refuseSwapping(need, this.runtime.layers.missingBytes, unusedBytes());
  }

  /** The bytes of the model's tokens, read when they are first needed. */
  async tokenText(): Promise<TokenText> {
    const tokenizer = await this.#loadTokenizer("stopStrings need", "use stopTokens");
    return { bytesOf: (token) => tokenizer.tokenBytes(token) };
  }

  /** A constraint over the model's tokens; recent ones are cached. */
  async constraint({ grammar, textTokens = [] }: SampleConstraint): Promise<Constraint> {
    const tokenizer = await this.#loadTokenizer("a constraint needs", "use a model folder");
    this.#constraints ??= new Constraints(
      this.config.vocabSize,
      (token) => tokenizer.tokenBytes(token),
      new Set(tokenizer.specialTokens.values()),
    );
    return this.#constraints.get(grammar, textTokens);
  }

  async release(): Promise<void> {
    const reason = new EngineError("model_unloaded", "the model was unloaded while it sampled.");
    await this.sampler.close(reason);
    await this.runtime.release();
    await this.#source.close();
  }

  #loadTokenizer(need: string, suggestion: string): Promise<Tokenizer> {
    const { folder } = this.#source;
    if (folder === null) {
      throw new EngineError(
        "no_tokenizer",
        `${need} the model's tokenizer, but this model was not loaded from a folder; ${suggestion}.`,
      );
    }
    this.#tokenizer ??= loadTokenizer(folder);
    return this.#tokenizer;
  }
}
