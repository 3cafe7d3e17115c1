import { RequestFailedError, ResultError } from "../../errors/request-failed-error.js";
import type { Operation } from "../../futures/operation.js";
import type { RequestType } from "../../futures/poll-future.js";
import { abortable, type Cancellation } from "../../runtime/cancellation.js";
import { BadRequestError, mayHaveBeenApplied } from "../../errors/api-error.js";
import { holdHeaders, type Acceptance, type RequestOf } from "../../transport/api.js";
import type { WireValue } from "../../wire/wire-types.js";
import type { TrainingRun, Turn } from "./training-run.js";

const kinds = {
  optimStep: { requestType: "OptimStep", resultType: "OptimStepResponse" },
  saveWeights: { requestType: "SaveWeights", resultType: "SaveWeightsResponse" },
  saveWeightsForSampler: {
    requestType: "SaveWeightsForSampler",
    resultType: "SaveWeightsForSamplerResponseInternal",
  },
  loadWeights: { requestType: "LoadWeights", resultType: "LoadWeightsResponse" },
} as const satisfies Record<SmallEndpoint, { requestType: RequestType; resultType: string }>;

/** The result of a small training request. */
export type ResultOf<E extends SmallEndpoint> = WireValue<(typeof kinds)[E]["resultType"]>;

/** Sends a small training request in its turn and waits for its result. */
export async function runRequest<E extends SmallEndpoint>(
  run: TrainingRun,
  operation: Operation,
  endpoint: E,
  build: (seqId: number) => RequestOf<E>,
): Promise<ResultOf<E>> {
  const { clock } = run.session.runtime;
  const turn = run.sequence.take();
  const startedAt = clock.now();
  const accepted = await submitRequest(run, operation, turn, endpoint, build);
  const roundTripMs = clock.now() - startedAt;
  return run.poll({ ...kinds[endpoint], ...accepted, roundTripMs }, operation) as Promise<
    ResultOf<E>
  >;
}

/** Refusals of servers that load into new models only. */
const loadsFirst = /not permitted|first request|new(ly created)? model/i;

/**
 * Loads a checkpoint. The turn lasts until the result is there, because some servers load only as a model's first
 * request: then a new model is made, the checkpoint is loaded into it, and the run goes on with that one. What was
 * called later must not have been sent to the old one by then.
 */
export async function runLoad(
  run: TrainingRun,
  operation: Operation,
  build: (modelId: string, seqId: number) => RequestOf<"loadWeights">,
  makeModel: ((signal: Cancellation) => Promise<string>) | undefined,
): Promise<ResultOf<"loadWeights">> {
  const turn = run.sequence.take();
  let holders = 2;
  const end = (): void => {
    if (--holders === 0) turn.end();
  };
  const load = async (held: Turn): Promise<ResultOf<"loadWeights">> => {
    const accepted = await submitRequest(run, operation, held, "loadWeights", (seqId) =>
      build(run.modelId, seqId),
    );
    return run.poll({ ...kinds.loadWeights, ...accepted, roundTripMs: 0 }, operation);
  };
  try {
    return await load({ ready: turn.ready, end });
  } catch (error) {
    if (!isRefusedLoad(error) || run.sequence.next === 1) throw error;
    if (!makeModel) {
      error.message +=
        "; this server loads into new models only: use createTrainingClientFromState";
      throw error;
    }
    const former = run.modelId;
    run.moveTo(await makeModel(operation.signal));
    run.session.runtime.logger.warn(
      `this server loads into new models only: training of ${former} goes on as ${run.modelId}`,
    );
    return await load({ ready: Promise.resolve(), end: () => {} });
  } finally {
    end();
  }
}

function isRefusedLoad(error: unknown): error is Error {
  const cause = error instanceof ResultError ? error.cause : error;
  const isRefusal = cause instanceof BadRequestError || cause instanceof RequestFailedError;
  return isRefusal && loadsFirst.test(cause.message);
}

/** Training requests that are small and travel as JSON. */
type SmallEndpoint = "optimStep" | "saveWeights" | "saveWeightsForSampler" | "loadWeights";

/**
 * Sends one small request when its turn comes.
 *
 * An operation that is aborted while it waits is not sent. An operation that is aborted while it is being
 * sent goes on until it is accepted or refused; only then may the next one start.
 */
async function submitRequest<E extends SmallEndpoint>(
  run: TrainingRun,
  operation: Operation,
  turn: Turn,
  endpoint: E,
  build: (seqId: number) => RequestOf<E>,
): Promise<Acceptance> {
  const { session, sequence } = run;
  const { clock } = session.runtime;
  await run.waitForTurn(operation, turn);
  return abortable(send(), operation.signal);

  async function send(): Promise<Acceptance> {
    const sentAt = clock.now();
    const { closed, api } = session;
    try {
      const request = build(sequence.next);
      const headers = holdHeaders({ isAlone: sequence.isShort });
      const retries = { host: session, operation };
      const accepted = await api.submit(endpoint, request, { signal: closed, headers, retries });
      sequence.next++;
      operation.accepted(accepted.requestId);
      return accepted;
    } catch (error) {
      if (mayHaveBeenApplied(error)) {
        sequence.lose(`${operation.name} (seq_id ${sequence.next})`, error);
      }
      throw error;
    } finally {
      operation.spent("submitMs", sentAt);
      turn.end();
    }
  }
}
