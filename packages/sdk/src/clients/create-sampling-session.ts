import { ArgumentError } from "../errors/argument-error.js";
import type { OperationOptions } from "../futures/operation.js";
import type { Session } from "../session/session.js";
import { bounded } from "./bounded.js";
import { completeRetryConfig, type RetryConfig } from "./retry-config.js";
import { SamplingClient } from "./sampling-client.js";

/** What to sample from: saved weights, a base model, or saved weights with their base model. */
export interface SamplingSource {
  /** The path of saved weights (`tinker://...`). */
  readonly modelPath?: string | undefined;
  /** The name of a base model. */
  readonly baseModel?: string | undefined;
}

/** Checks that there is something to sample from. */
export function checkSamplingSource({ modelPath, baseModel }: SamplingSource): void {
  if (!modelPath && !baseModel) {
    throw new ArgumentError("modelPath", "pass modelPath or baseModel: what to sample from");
  }
  if (modelPath && !modelPath.startsWith("tinker://")) {
    throw new ArgumentError("modelPath", `${JSON.stringify(modelPath)} must start with tinker://`);
  }
}

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
  session.join();
  return new SamplingClient(session, samplingSessionId, options.retryConfig);
}
