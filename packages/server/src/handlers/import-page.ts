import { randomBytes } from "node:crypto";
import type { ParameterExport } from "@tinker-ts/engine";
import { credentialOf, type Authenticator } from "../auth/authenticator.js";
import { checkName, parsePath, pathOf } from "../checkpoints/checkpoint-names.js";
import { unpackAdapter } from "../checkpoints/unpack-adapter.js";
import type { Core } from "../core.js";
import { ApiError, badRequest, conflict } from "../errors/api-error.js";
import type { ExtraPage } from "../http/app.js";
import { emptyResponse } from "../http/answers.js";
import { pacedBody } from "../http/read-body.js";

/**
 * Uploads an adapter that was made elsewhere as a checkpoint of a run: PUT where GET gives the
 * archive. An addition of this project, since the API itself cannot bring weights in.
 */
export function importPage(core: Core, authenticator: Authenticator): ExtraPage {
  return {
    method: "PUT",
    path: "/api/v1/training_runs/:run/checkpoints/:folder/:name/archive",
    async answer(request, { run, folder, name: given }) {
      const caller = authenticator.identify(credentialOf(request.headers));
      if (!caller) throw new ApiError(401, "put a valid key into the header X-API-Key");
      const tinkerPath = `tinker://${run}/${folder}/${given}`;
      const { trainingRunId, checkpointType, name } = parsePath(tinkerPath);
      const target = { runId: trainingRunId, type: checkpointType, name: checkName(name) };
      await importCheckpoint(core, caller.owner, target, request);
      return emptyResponse();
    },
  };
}

async function importCheckpoint(
  { context, runs, bases, checkpoints }: Core,
  owner: string,
  target: { runId: string; type: "training" | "sampler"; name: string },
  request: Request,
): Promise<void> {
  const { store, clock, limits, logger } = context;
  const { runId, type, name } = target;
  const { sessionId, baseModel } = runs.model(runId, { owner });
  const refuseTaken = (): void => {
    if (store.checkpoints.get(runId, type, name)) {
      throw conflict(`checkpoint ${pathOf(target)} exists already; choose another name`);
    }
  };
  refuseTaken();
  checkpoints.checkQuota(owner);
  const { folders } = checkpoints;
  const upload = `upload-${randomBytes(12).toString("hex")}`;
  try {
    // Adapters may be larger than any other body, so they get longer, at the same pace.
    const bodyTimeoutMs = limits.bodyTimeoutMs * (limits.maxImportBytes / limits.maxBodyBytes);
    await unpackAdapter(
      request.body && pacedBody(request.body, { ...limits, bodyTimeoutMs }, clock),
      folders.pathOf(upload),
      limits.maxImportBytes,
      request.signal,
    );
    const base = await bases.find(baseModel);
    const foreign = await folders.readForeign(upload, base.folder).catch(explain);
    const { lora, state, samplingOnly } = foreign;
    await context.loop.run(owner, checkFinite(state));
    const isTrainable = type === "training";
    if (isTrainable && samplingOnly !== undefined) {
      throw badRequest(
        "body",
        `the adapter can be sampled from and not be trained: ${samplingOnly}. Import it as sampler_weights`,
      );
    }
    const kept = isTrainable ? state : { tensors: state.tensors };
    const written = await folders.write({ lora, baseModel, state: kept }, { of: pathOf(target) });
    const now = clock.now();
    try {
      await store.write(() => {
        refuseTaken();
        store.checkpoints.insert({
          ...written,
          ...target,
          owner,
          sessionId,
          baseModel,
          lora,
          hasOptimizer: isTrainable && state.optimizer !== undefined,
          userMetadata: null,
          isPublic: false,
          isEphemeral: false,
          createdAt: now,
          usedAt: now,
          expiresAt: null,
          deletedAt: null,
        });
        const tinkerPath = pathOf(target);
        const event = "checkpoint.imported";
        store.audit.add({ at: now, owner, event, modelId: runId, tinkerPath });
      });
    } catch (error) {
      await folders.remove([written.folder]);
      throw error;
    }
    logger.info("checkpoint imported", { path: pathOf(target) });
  } finally {
    await folders.remove([upload]);
  }
}

/** Numbers that are looked at before others may have a turn. */
const valuesPerSlice = 1 << 18;

/** One number that is none would spoil everything that is computed with it. */
function* checkFinite({ tensors, optimizer }: ParameterExport): Generator<void, void, void> {
  const groups = { weights: tensors, ...optimizer };
  for (const group of Object.values(groups)) {
    if (typeof group === "number") continue;
    for (const [name, { data }] of group) {
      for (let start = 0; start < data.length; start += valuesPerSlice) {
        const slice = data.subarray(start, start + valuesPerSlice);
        const bad = slice.find((value) => !Number.isFinite(value));
        if (bad !== undefined) {
          throw badRequest(
            "body",
            `${name} holds ${bad}; all numbers of an adapter must be finite`,
          );
        }
        yield;
      }
    }
  }
}

/** Errors about an adapter's files are shown to its owner. */
function explain(error: unknown): never {
  const isRefusal =
    error instanceof Error && (error.name === "EngineError" || error.name === "HubError");
  throw isRefusal ? badRequest("body", error.message.replace(/ \/\S*upload-\w+/g, "")) : error;
}
