import { kindKey, mixerOf, type LayerKind } from "@tinker-ts/hub/weights";
import type { ProgramCache } from "../execution/program-cache.js";
import type { Program } from "../execution/program.js";
import type { ModelConfig } from "../model/model-config.js";
import { attentionBlockBackward, attentionBlockForward } from "./graphs/attention-block.js";
import { attentionInputsBackward, attentionInputsForward } from "./graphs/attention-inputs.js";
import { headBackward, headForward, headLoss } from "./graphs/head.js";
import { layerOutputsBackward, layerOutputsForward } from "./graphs/layer-outputs.js";
import { segmentBackward, segmentForward, type SegmentOptions } from "./graphs/segment.js";
import type { Trained } from "./graphs/trained.js";
import { losses, type LossName } from "./losses.js";

/** What tells the segments of one way of training apart. */
export type SegmentShape = Omit<SegmentOptions, "trained">;

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
    const merged = trained.kind === "adapter" && trained.merged ? "merged" : "";
    this.#key = trained.kind === "full" ? "full" : `${trained.sites.toSorted().join()} ${merged}`;
  }

  segmentForward(options: SegmentShape): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get(`segment ${keyOf(options)}`, () =>
      segmentForward(config, { ...options, trained }),
    );
  }

  segmentBackward(options: SegmentShape): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get(`segmentBackward ${keyOf(options)}`, () =>
      segmentBackward(config, { ...options, trained }),
    );
  }

  attentionInputsForward(kind: LayerKind): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get(`attentionInputs ${kindKey(kind)}`, () =>
      attentionInputsForward(config, kind, trained),
    );
  }

  attentionInputsBackward(kind: LayerKind, inputGradient: boolean): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get(`attentionInputsBackward ${kindKey(kind)} ${inputGradient}`, () =>
      attentionInputsBackward(config, kind, trained, inputGradient),
    );
  }

  attentionBlockForward(kind: LayerKind): Promise<Program> {
    return this.#cache.get(`attentionBlock ${kindKey(kind)}`, () =>
      attentionBlockForward(this.#config, kind),
    );
  }

  attentionBlockBackward(kind: LayerKind): Promise<Program> {
    return this.#cache.get(`attentionBlockBackward ${kindKey(kind)}`, () =>
      attentionBlockBackward(this.#config, kind),
    );
  }

  layerOutputsForward(kind: LayerKind): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get("layerOutputs", () => layerOutputsForward(config, kind, trained));
  }

  layerOutputsBackward(kind: LayerKind): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get("layerOutputsBackward", () => layerOutputsBackward(config, kind, trained));
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

function keyOf({ kinds, layout, chunks, handsOn, inputGradient, keep }: SegmentShape): string {
  const states = kinds.some(hasState) ? `${chunks} ${handsOn === true ? "handed on" : ""}` : "";
  return `${kinds.map(kindKey).join()} ${layout} ${states} ${inputGradient} ${keep}`;
}

function hasState(kind: LayerKind): boolean {
  return mixerOf(kind) !== "attention";
}
