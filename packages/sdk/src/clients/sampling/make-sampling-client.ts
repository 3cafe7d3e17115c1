import type { OperationOptions } from "../../futures/operation.js";
import type { Session } from "../../session/session.js";
import { bounded } from "../bounded.js";
import { completeRetryConfig, type RetryConfig } from "../retry-config.js";
import type { SamplingClient } from "../sampling-client.js";
import { checkSamplingSource, type SamplingSource } from "../sampling-source.js";
import { readSwitch } from "../../runtime/environment.js";
import { RemoteSamplingClient } from "./remote-sampling-client.js";
import type { KnownTokenizer } from "./sequence-extras.js";

/** A client for a sampler of a session, in this thread or in the side thread as asked for. */
export async function makeSamplingClient(
  session: Session,
  samplingSessionId: string,
  retryConfig: RetryConfig | undefined,
  tokenizer: KnownTokenizer = {},
): Promise<SamplingClient> {
  session.join();
  const client = new RemoteSamplingClient(session, samplingSessionId, retryConfig, { tokenizer });
  const { plan, runtime } = session;
  // What answers inside this thread cannot be asked from another one; only an explicit wish is refused.
  const isAsked =
    plan.options.sideThread ??
    (!session.parts.isInside && readSwitch(runtime.env, "TINKER_SUBPROCESS_SAMPLING", false));
  if (!isAsked) return client;
  const { SideSamplingClient } = await import("../side-thread/side-sampling-client.js");
  return new SideSamplingClient(client, session, tokenizer);
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
    baseModel: source.baseModel && session.parts.nameModel(source.baseModel),
    modelPath: source.modelPath,
  };
  const { samplingSessionId } = await bounded("createSamplingClient", options, session, (signal) =>
    session.api.call("createSamplingSession", request, { signal }),
  );
  return makeSamplingClient(session, samplingSessionId, options.retryConfig);
}
