import { decodeJson, encodeJson, stringifyJson, parseJson, type WireValue } from "tinker-ts/wire";
import { badRequest } from "../../errors/api-error.js";
import type { CheckpointRecord } from "../../store/checkpoints-table.js";
import type { LoraSettings, Model } from "../../store/models-table.js";
import { noLeftovers } from "../snapshots.js";
import { jsonResult, type Operation } from "./operation.js";

/** A load as it waits for its turn: without the access token, which was turned into names of owners. */
export interface LoadOrder {
  readonly request: WireValue<"LoadWeightsRequest">;
  /** Whose private checkpoints may be read. */
  readonly readers: readonly string[];
}

export function encodeLoadOrder({ request, readers }: LoadOrder): Uint8Array {
  const wire = encodeJson("LoadWeightsRequest", { ...request, weightsAccessToken: null });
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
export const loadWeights: Operation = async (parts, { live, payload, request }) => {
  const order = decodeLoadOrder(await payload());
  const { path, optimizer } = order.request;
  const checkpoint = parts.checkpoints.readable(path, order.readers);
  checkFits(checkpoint, live.model, optimizer);
  const state = await parts.checkpoints.read(checkpoint, live.modelFolder);
  await live.change((adapter) => adapter.importState(state, { optimizer }));
  const snapshot = await parts.snapshots.writeNow(live, live.applied + 1, request.requestId);
  const isCreation = request.seq === 0;
  let leftovers = noLeftovers;
  return {
    ...jsonResult("LoadWeightsResponse", {
      type: "load_weights",
      path,
      modelId: live.model.modelId,
    }),
    usage: [],
    change: "replaced",
    telling: { mark: { kind: "loaded", text: `weights of ${path} loaded`, subject: path } },
    commit: () => {
      leftovers = parts.snapshots.makeCurrent(snapshot, "replacing");
      if (isCreation) parts.context.store.models.setState(live.model.modelId, "live");
    },
    afterCommit: () => parts.snapshots.discard(leftovers),
    undo: () => parts.snapshots.discard({ folders: [snapshot.folder], blobs: [] }),
  };
};

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
