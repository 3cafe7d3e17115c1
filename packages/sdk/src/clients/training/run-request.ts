import type { Operation } from "../../futures/operation.js";
import type { RequestType } from "../../futures/poll-context.js";
import type { RequestOf } from "../../transport/api.js";
import type { WireValue } from "../../wire/wire-types.js";
import { submitRequest, type SmallEndpoint } from "./submit-request.js";
import type { TrainingRun } from "./training-run.js";

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
  const turn = run.sequence.takeTurn();
  const startedAt = clock.now();
  const accepted = await submitRequest(run, operation, turn, endpoint, build);
  const roundTripMs = clock.now() - startedAt;
  return run.poll({ ...kinds[endpoint], ...accepted, roundTripMs }, operation) as Promise<
    ResultOf<E>
  >;
}
