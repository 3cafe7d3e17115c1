import type { OperationOptions } from "../../futures/operation.js";
import type { GetSamplerResponse } from "../../types/sampling.js";
import { bounded } from "../bounded.js";
import type { Sampler } from "./sampler.js";

/** Asks the server what a sampler samples from. */
export function describeSampler(
  { session, samplingSessionId }: Sampler,
  options: OperationOptions,
): Promise<GetSamplerResponse> {
  return bounded("getSampler", options, session, (signal) =>
    session.retrying(
      "getSampler",
      () =>
        session.connection.api.call("getSampler", null, {
          params: { samplerId: samplingSessionId },
          signal,
        }),
      { signal },
    ),
  );
}
