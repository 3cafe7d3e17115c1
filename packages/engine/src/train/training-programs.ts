import type { ModelConfig } from "../files/model-config.js";
import type { ProgramCache } from "../runtime/program-cache.js";
import type { Program } from "../runtime/program.js";
import { attentionBackward, attentionForward } from "./graphs/attention.js";
import { attentionInputsBackward, attentionInputsForward } from "./graphs/attention-inputs.js";
import { headBackward, headForward, headLoss } from "./graphs/head.js";
import { layerOutputsBackward, layerOutputsForward } from "./graphs/layer-outputs.js";
import { adaptedSites, type Trained } from "./graphs/trained.js";
import { losses, type LossName } from "./losses.js";

/** The programs of one way of training a model; all layers, ranks and batch sizes share them. */
export class TrainingPrograms {
  readonly #config: ModelConfig;
  readonly #cache: ProgramCache;
  readonly #trained: Trained;
  readonly #key: string;

  constructor(config: ModelConfig, cache: ProgramCache, trained: Trained) {
    this.#config = config;
    this.#cache = cache;
    this.#trained = trained;
    this.#key = trained.kind === "full" ? "full" : adaptedSites(trained).toSorted().join();
  }

  attentionInputsForward(): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get("attentionInputs", () => attentionInputsForward(config, trained));
  }

  attentionInputsBackward(inputGradient: boolean): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get(`attentionInputsBackward ${inputGradient}`, () =>
      attentionInputsBackward(config, trained, inputGradient),
    );
  }

  attentionForward(): Promise<Program> {
    return this.#cache.get("attention", () => attentionForward(this.#config));
  }

  attentionBackward(): Promise<Program> {
    return this.#cache.get("attentionBackward", () => attentionBackward(this.#config));
  }

  layerOutputsForward(): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get("layerOutputs", () => layerOutputsForward(config, trained));
  }

  layerOutputsBackward(): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get("layerOutputsBackward", () => layerOutputsBackward(config, trained));
  }

  headForward(): Promise<Program> {
    return this.#get("head", () => headForward(this.#config, this.#trained));
  }

  headLoss(loss: LossName): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get(`headLoss ${loss}`, () => headLoss(config, trained, losses[loss]));
  }

  headBackward(loss: LossName, inputGradient: boolean): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get(`headBackward ${loss} ${inputGradient}`, () =>
      headBackward(config, trained, losses[loss], inputGradient),
    );
  }

  #get(name: string, compile: Parameters<ProgramCache["get"]>[1]): Promise<Program> {
    return this.#cache.get(`${name} ${this.#key}`, compile);
  }
}
