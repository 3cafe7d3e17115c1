import type { LoraFlags } from "@tinker-ts/hub/weights";
import type { ModelConfig } from "./model/model-config.js";
import { Adapter } from "./adapter.js";
import { EngineError } from "./errors.js";
import { FullTuning } from "./full-tuning.js";
import type { Precision } from "./model/precision.js";
import { sampledSitesOfFlags, sitesOfFlags, type Site } from "./model/sites.js";
import type { ModelInfo } from "./runtime/protocol.js";
import type { WorkerClient } from "./runtime/worker-client.js";
import type { SampleOptions } from "./sample/request.js";
import type { SampleResult, TokenEvent } from "./sample/sequence.js";
import type { Snapshot } from "./snapshot.js";

/** Size, initial values and matrices of an adapter. */
export interface AdapterOptions {
  /** 1 to 256. */
  readonly rank: number;
  /** The adapter's product is scaled by alpha / rank. @default 32 */
  readonly alpha?: number;
  /** Random seed of the initial values. @default 0 */
  readonly seed?: number;
  /** @default true */
  readonly trainAttn?: boolean;
  /** @default true */
  readonly trainMlp?: boolean;
  /** @default true */
  readonly trainUnembed?: boolean;
  /**
   * Accepts every adapter that can be sampled from, also with tensors that are not trained here (those of
   * in_proj_a and in_proj_b); the adapter cannot be trained. @default false
   */
  readonly forSampling?: boolean;
}

/** A sampling request. */
export interface SampleRequest extends SampleOptions {
  /** Weights to sample from. @default the base model */
  readonly adapter?: Pick<Snapshot, "id">;
  readonly signal?: AbortSignal;
  /** Called for every token as it is generated. */
  readonly onToken?: (event: TokenEvent) => void;
}

const maxRank = 256;

/** A model in an engine: the base of any number of adapters. */
export class BaseModel {
  readonly config: ModelConfig;
  /** Where it was loaded from; null for a model that was made in memory. */
  readonly folder: string | null;
  /** Precision that it is computed in. */
  readonly precision: Precision;
  /** Number of tensors in its files that belong to parts that are not loaded, such as vision. */
  readonly leftOut: number;
  readonly #client: WorkerClient;
  readonly #id: number;

  /** Use `Engine.loadModel` or `Engine.createModel`. */
  constructor(client: WorkerClient, info: ModelInfo) {
    this.#client = client;
    this.#id = info.model;
    this.config = info.config;
    this.folder = info.folder;
    this.leftOut = info.leftOut ?? 0;
    this.precision = info.config.precision ?? { weights: "f32" };
  }

  /** Longest sequence in tokens. */
  get contextLength(): number {
    return this.config.contextLength;
  }

  get vocabSize(): number {
    return this.config.vocabSize;
  }

  /** Makes a new adapter, which changes nothing until it is trained. */
  async createAdapter(options: AdapterOptions): Promise<Adapter> {
    const { rank, alpha = 32, seed = 0 } = options;
    const { trainAttn = true, trainMlp = true, trainUnembed = true } = options;
    const { forSampling = false } = options;
    const flags = { trainAttn, trainMlp, trainUnembed };
    if (!Number.isInteger(rank) || rank < 1 || rank > maxRank) {
      throw invalid("rank", rank, `a whole number from 1 to ${maxRank}`);
    }
    if (!Number.isFinite(alpha) || alpha <= 0) throw invalid("alpha", alpha, "a number above 0");
    if (!Number.isSafeInteger(seed)) throw invalid("seed", seed, "a whole number");
    const sites = adaptedSites(this.config, flags, forSampling);
    const info = await this.#client.call("createAdapter", {
      model: this.#id,
      rank,
      alpha,
      seed,
      sites,
      forSampling,
    });
    return new Adapter(this.#client, info, { rank, alpha, seed, ...flags });
  }

  /** Trains a copy of all weights of the model. */
  async createFullTuning(): Promise<FullTuning> {
    const info = await this.#client.call("createFullTuning", { model: this.#id });
    return new FullTuning(this.#client, info);
  }

  /** Generates samples, or log-probabilities of a prompt. */
  async sample(request: SampleRequest): Promise<SampleResult> {
    const { adapter, signal, onToken, ...options } = request;
    const onEvent =
      onToken && ((events: readonly TokenEvent[]) => events.forEach((event) => onToken(event)));
    return this.#client.call(
      "sample",
      { model: this.#id, snapshot: adapter?.id ?? null, options },
      { signal, onEvent },
    );
  }

  /** Frees the model and everything that belongs to it; running samples fail. */
  async unload(): Promise<void> {
    await this.#client.call("unloadModel", { model: this.#id });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.unload();
  }
}

function adaptedSites(
  config: ModelConfig,
  flags: LoraFlags,
  forSampling: boolean,
): readonly Site[] {
  const sites = (forSampling ? sampledSitesOfFlags : sitesOfFlags)(config, flags);
  if (sites.length > 0) return sites;
  throw new EngineError(
    "nothing_to_train",
    "trainAttn, trainMlp and trainUnembed are all false; set at least one to true.",
  );
}

function invalid(name: string, value: number, allowed: string): EngineError {
  return new EngineError("invalid_adapter", `${name} is ${value}; it must be ${allowed}.`);
}
