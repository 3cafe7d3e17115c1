import type { LoraFlags } from "@tinker-ts/hub/weights";
import type { ParametersInfo } from "./runtime/protocol.js";
import type { WorkerClient } from "./runtime/worker-client.js";
import { Snapshot } from "./snapshot.js";
import { TrainedModel } from "./trained-model.js";

/** The settings an adapter was made with. */
export interface AdapterProperties extends LoraFlags {
  readonly rank: number;
  readonly alpha: number;
  readonly seed: number;
}

/** A LoRA adapter in training. */
export class Adapter extends TrainedModel implements AdapterProperties {
  readonly rank: number;
  readonly alpha: number;
  readonly seed: number;
  readonly trainAttn: boolean;
  readonly trainMlp: boolean;
  readonly trainUnembed: boolean;

  /** Use `BaseModel.createAdapter`. */
  constructor(client: WorkerClient, info: ParametersInfo, properties: AdapterProperties) {
    super(client, info);
    this.rank = properties.rank;
    this.alpha = properties.alpha;
    this.seed = properties.seed;
    this.trainAttn = properties.trainAttn;
    this.trainMlp = properties.trainMlp;
    this.trainUnembed = properties.trainUnembed;
  }

  /** Keeps the current weights for sampling; later training does not change them. Copies nothing. */
  async snapshot(): Promise<Snapshot> {
    const { snapshot } = await this.client.call("snapshot", { parameters: this.parameters });
    return new Snapshot(this.client, snapshot);
  }
}
