import { ArgumentError } from "../errors/argument-error.js";
import { mayHaveBeenApplied } from "../errors/api-error.js";
import type { Operation } from "../futures/operation.js";
import { abortable } from "../runtime/cancellation.js";
import type { Connection } from "../session/connection.js";
import { jsonBody, type Acceptance } from "../transport/api.js";
import type { ExternalWeightsUrlsResponse, SaveWeightsExternalResponse } from "../types/weights.js";
import { decodeJson } from "../wire/json-codec.js";
import type { Route } from "../wire/routes.js";
import type { TrainingRun, Turn } from "./training/training-run.js";

/*
 * Endpoints that some servers have and that of this project has not: weights as files under addresses for use elsewhere.
 * The shared table has what both ends know, so that these are here.
 */
const common = { request: null, response: null, pool: "train", since: "0.28.0" } as const;

const saveRoute: Route = {
  ...common,
  method: "POST",
  path: "/api/v1/save_weights_external",
  retry: "outer",
};

const urlsRoute: Route = {
  ...common,
  method: "GET",
  path: "/api/v1/training_runs/{trainingRunId}/checkpoints/{checkpointId}/external_weights_urls",
  retry: "http",
};

/** Saves external weights in their turn and waits for the result. */
export async function saveExternal(
  run: TrainingRun,
  operation: Operation,
  turn: Turn,
  options: { readonly name: string; readonly ttlSeconds: number | null | undefined },
): Promise<SaveWeightsExternalResponse> {
  const { session, sequence } = run;
  await run.waitForTurn(operation, turn);
  const accepted = await abortable(send(), operation.signal);
  const kind = {
    requestType: "SaveWeightsExternal",
    resultType: "SaveWeightsExternalResponse",
  } as const;
  return run.poll({ ...kind, ...accepted, roundTripMs: 0 }, operation);

  async function send(): Promise<Acceptance> {
    const { closed: signal, api } = session;
    const { name: path, ttlSeconds } = options;
    const ttl = typeof ttlSeconds === "number" ? { ttl_seconds: ttlSeconds } : {};
    const body = { model_id: run.modelId, path, seq_id: sequence.next, ...ttl };
    const type = "save_weights_external";
    try {
      const retries = { host: session, operation };
      const sent = jsonBody({ ...body, type });
      const response = await api.exchangeAt(saveRoute, type, sent, { signal, retries });
      const { requestId } = decodeJson("UntypedAPIFuture", response.body, { isLenient: true });
      sequence.next++;
      operation.accepted(requestId);
      return { requestId };
    } catch (error) {
      if (mayHaveBeenApplied(error)) sequence.lose(`${type} (seq_id ${sequence.next})`, error);
      throw error;
    } finally {
      turn.end();
    }
  }
}

/** Asks for the addresses of the files. */
export async function externalUrls(
  connection: Connection,
  tinkerPath: string,
  signal: AbortSignal,
): Promise<ExternalWeightsUrlsResponse> {
  const [, trainingRunId, checkpointId] =
    /^tinker:\/\/([^/]+)\/(external_weights\/[^/]+)$/.exec(tinkerPath) ?? [];
  if (!trainingRunId || !checkpointId) {
    throw new ArgumentError(
      "path",
      `${JSON.stringify(tinkerPath)} is no path of external weights; expected tinker://<run>/external_weights/<name>`,
    );
  }
  const params = { trainingRunId, checkpointId };
  const how = { params, signal, retries: { host: connection } };
  const response = await connection.api.exchangeAt(urlsRoute, "externalWeightsUrls", null, how);
  return decodeJson("ExternalWeightsUrlsResponse", response.body, { isLenient: true });
}
