import type { SignedLinks } from "../auth/signed-links.js";
import { parsePath } from "../checkpoints/checkpoint-names.js";
import type { Core } from "../core.js";
import { badRequest } from "../errors/api-error.js";
import type { Call, HandlersOf } from "../http/call.js";
import { pageOf } from "../rest/query.js";
import { getRun, toCheckpoint } from "../rest/runs.js";
import type { CheckpointRecord } from "../store/checkpoints-table.js";

const archiveLinkMs = 15 * 60_000;

/** Kinds of links to archives, by the name of the unembedding in them. */
const archiveKinds = { peft: "archive", tinker: "archive-tinker" };

function layoutOf({ query: { layout = "peft" } }: Call): keyof typeof archiveKinds {
  if (layout === "peft" || layout === "tinker") return layout;
  throw badRequest("layout", `${JSON.stringify(layout)} is not known; use peft or tinker`);
}

/** The purpose in the audit log: `studio` for requests of the studio's page. */
function purposeOf({ headers }: Call): string | null {
  return headers.get("x-tinker-studio") === "1" ? "studio" : null;
}

/** Saved weights: listing, deleting, sharing, expiry, archives. */
export function checkpointHandlers(
  { context, checkpoints }: Core,
  links: SignedLinks,
): HandlersOf<
  | "listCheckpoints"
  | "listUserCheckpoints"
  | "deleteCheckpoint"
  | "publishCheckpoint"
  | "unpublishCheckpoint"
  | "setCheckpointTtl"
  | "getCheckpointArchiveUrl"
  | "weightsInfo"
> {
  const { store } = context;
  const pathOfCall = ({ params }: Call): string =>
    `tinker://${params["trainingRunId"]}/${params["checkpointId"]}`;
  const owned = (call: Call): CheckpointRecord => {
    const { trainingRunId, checkpointType, name } = parsePath(pathOfCall(call));
    return checkpoints.owned(trainingRunId, checkpointType, name, call.caller.owner);
  };

  return {
    listCheckpoints({ caller, params }) {
      const runId = params["trainingRunId"] ?? "";
      const run = getRun(store, runId, caller.owner, true);
      const visible = store.checkpoints
        .byRun(runId)
        .filter(({ isPublic }) => isPublic || run.modelOwner === caller.owner);
      return { checkpoints: visible.map(toCheckpoint) };
    },

    listUserCheckpoints({ caller, query }) {
      const { limit, offset } = pageOf(query, 100);
      const { count: totalCount } = store.checkpoints.usage(caller.owner);
      const page = store.checkpoints.byOwner(caller.owner, limit, offset);
      return { checkpoints: page.map(toCheckpoint), cursor: { limit, offset, totalCount } };
    },

    deleteCheckpoint: (call) =>
      checkpoints.remove(owned(call), "checkpoint.deleted", purposeOf(call)),

    publishCheckpoint: (call) => checkpoints.setPublic(owned(call), true, purposeOf(call)),

    unpublishCheckpoint: (call) => checkpoints.setPublic(owned(call), false, purposeOf(call)),

    async setCheckpointTtl(call) {
      const { ttlSeconds } = call.body;
      if (ttlSeconds !== null && ttlSeconds <= 0) {
        throw badRequest(
          "ttl_seconds",
          `must be above 0, or null for no expiry; got ${ttlSeconds}`,
        );
      }
      const ttlMs = ttlSeconds === null ? null : ttlSeconds * 1000;
      await checkpoints.setTtl(owned(call), ttlMs, purposeOf(call));
    },

    getCheckpointArchiveUrl(call) {
      const { folder } = checkpoints.readable(pathOfCall(call), [call.caller.owner]);
      const target = { kind: archiveKinds[layoutOf(call)], subject: folder };
      const { url, expiresAt } = links.sign(call.origin, target, archiveLinkMs);
      const expires = new Date(expiresAt).toUTCString();
      return new Response(null, { status: 302, headers: { location: url, expires } });
    },

    weightsInfo({ caller, body }) {
      const { baseModel, lora } = checkpoints.readable(body.tinkerPath, [caller.owner]);
      const { rank, trainUnembed, trainMlp, trainAttn } = lora;
      return { baseModel, isLora: true, loraRank: rank, trainUnembed, trainMlp, trainAttn };
    },
  };
}
