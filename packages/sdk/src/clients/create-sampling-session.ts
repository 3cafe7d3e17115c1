import type { OperationOptions } from "../futures/operation.js";
import type { Session } from "../session/session.js";
import { bounded } from "./bounded.js";
import { makeSamplingClient } from "./make-sampling-client.js";
import { completeRetryConfig, type RetryConfig } from "./retry-config.js";
import type { SamplingClient } from "./sampling-client.js";
import { checkSamplingSource, type SamplingSource } from "./sampling-source.js";

/** Opens a sampler at the server. */
export async function createSamplingSession(
  session: Session,
  source: SamplingSource,
  options: OperationOptions & { readonly retryConfig?: RetryConfig | undefined },
): Promise<SamplingClient> {
  checkSamplingSource(source);
  completeRetryConfig(options.retryConfig);
  const request = {
    sessionId: session.sessionId,
    samplingSessionSeqId: session.nextSamplingSessionSeqId(),
    baseModel: source.baseModel,
    modelPath: source.modelPath,
  };
  const { samplingSessionId } = await bounded("createSamplingClient", options, session, (signal) =>
    session.connection.api.call("createSamplingSession", request, { signal }),
  );
  return makeSamplingClient(session, samplingSessionId, options.retryConfig);
}
