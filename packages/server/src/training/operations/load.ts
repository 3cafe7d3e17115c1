import { decodeJson, encodeJson, stringifyJson, parseJson, type WireValue } from "tinker-ts/wire";
import { badRequest } from "../../errors/api-error.js";
import type { CheckpointRecord } from "../../store/checkpoints-table.js";
import type { LoraSettings, Model } from "../../store/models-table.js";
import type { Checkpoints } from "../../checkpoints/checkpoints.js";
import type { Store } from "../../store/store.js";
import { noOrphans, type Snapshots } from "../snapshots.js";
import { jsonResult, type TrainingOperation } from "./operation.js";

/** What loads work with. */
export interface LoadParts {
  readonly store: Store;
  readonly checkpoints: Checkpoints;
  readonly snapshots: Snapshots;
}

/** A load as it waits for its turn: without the access token, which was turned into names of owners. */
export interface LoadOrder {
  readonly request: WireValue<"LoadWeightsRequest">;
  /** The owner of readable private checkpoints. */
  readonly readers: readonly string[];
}

export function encodeLoadOrder({ request, readers }: LoadOrder): Uint8Array {
  // AdamW is the default, with or without its name.
  const kept = { ...request, weightsAccessToken: null, optimizerConfig: null };
  const wire = encodeJson("LoadWeightsRequest", kept);
  return Buffer.from(stringifyJson({ request: wire, readers }));
}

export function decodeLoadOrder(payload: Uint8Array): LoadOrder {
  const order = parseJson(Buffer.from(payload).toString()) as Record<keyof LoadOrder, unknown>;
  return {
    request: decodeJson("LoadWeightsRequest", order.request),
    readers: order.readers as string[],
  };
}

/**
 * Replaces a model's weights by those of a checkpoint. Waiting gradients belong to the old weights and
 * go; Adam starts anew unless its state is loaded too. The new state is written out at once, because
 * the checkpoint may be gone by the time a restart would want to read it again.
 */
export function loadOperation({ store, checkpoints, snapshots }: LoadParts): TrainingOperation {
  return {
    resource: "engine",
    async run({ live, bytes, request }) {
      const order = decodeLoadOrder(await bytes());
      const { path, optimizer } = order.request;
      const { modelId } = live.model;
      const checkpoint = checkpoints.readable(path, order.readers);
      checkFits(checkpoint, live.model, optimizer);
      const state = await checkpoints.read(checkpoint, live.modelFolder);
      await live.change((adapter) => adapter.importState(state, { optimizer }));
      const snapshot = await snapshots.writeNow(live, live.applied + 1, request.requestId);
      const isCreation = request.seq === 0;
      let orphans = noOrphans;
      return {
        ...jsonResult("LoadWeightsResponse", { type: "load_weights", path, modelId }),
        usage: [],
        change: "replaced",
        update: { mark: { kind: "loaded", text: `weights of ${path} loaded`, subject: path } },
        write: () => {
          orphans = snapshots.makeCurrent(snapshot, "replacing");
          if (isCreation) store.models.setState(modelId, "live");
        },
        afterCommit: () => snapshots.discard(orphans),
        undo: () => snapshots.discard({ folders: [snapshot.folder], blobs: [] }),
      };
    },
  };
}

function checkFits(checkpoint: CheckpointRecord, model: Model, optimizer: boolean): void {
  if (checkpoint.baseModel !== model.baseModel) {
    throw badRequest(
      "path",
      `the checkpoint is for ${checkpoint.baseModel}, this model is a ${model.baseModel}`,
    );
  }
  for (const name of ["rank", "alpha", "trainAttn", "trainMlp", "trainUnembed"] as const) {
    checkSame(name, checkpoint.lora, model.lora);
  }
  if (optimizer && !checkpoint.hasOptimizer) {
    throw badRequest(
      "optimizer",
      "this checkpoint has no optimizer state; load a training checkpoint or leave the optimizer out",
    );
  }
}

function checkSame(name: keyof LoraSettings, saved: LoraSettings, own: LoraSettings): void {
  if (saved[name] === own[name]) return;
  throw badRequest(
    "path",
    `the checkpoint has ${name} ${String(saved[name])}, this model ${String(own[name])}; create a model from the checkpoint instead`,
  );
}
