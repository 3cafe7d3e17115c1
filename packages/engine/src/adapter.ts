import type { ParametersInfo } from "./runtime/protocol.js";
import type { WorkerClient } from "./runtime/worker-client.js";
import { Snapshot } from "./snapshot.js";
import { TrainedModel } from "./trained-model.js";

/** A LoRA adapter in training. */
export class Adapter extends TrainedModel {
  readonly rank: number;
  readonly alpha: number;

  /** Use `BaseModel.createAdapter`. */
  constructor(
    client: WorkerClient,
    info: ParametersInfo,
    { rank, alpha }: { rank: number; alpha: number },
  ) {
    super(client, info);
    this.rank = rank;
    this.alpha = alpha;
  }

  /** Keeps the current weights for sampling; later training does not change them. Copies nothing. */
  async snapshot(): Promise<Snapshot> {
    const { snapshot } = await this.client.call("snapshot", { parameters: this.parameters });
    return new Snapshot(this.client, snapshot);
  }
}
