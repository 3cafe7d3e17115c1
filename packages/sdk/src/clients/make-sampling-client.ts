import { readSwitch } from "../runtime/environment.js";
import type { Session } from "../session/session.js";
import type { RetryConfig } from "./retry-config.js";
import type { SamplingClient } from "./sampling-client.js";
import { RemoteSamplingClient } from "./sampling/remote-sampling-client.js";
import type { KnownTokenizer } from "./sampling/sequence-extras.js";

/** A client for a sampler of a session, in this thread or in the side thread as asked for. */
export async function makeSamplingClient(
  session: Session,
  samplingSessionId: string,
  retryConfig: RetryConfig | undefined,
  tokenizer: KnownTokenizer = {},
): Promise<SamplingClient> {
  session.join();
  const client = new RemoteSamplingClient(session, samplingSessionId, retryConfig, { tokenizer });
  const { plan, runtime, isInside } = session.connection;
  // What answers inside this thread cannot be asked from another one; only an explicit wish is refused.
  const isAsked =
    plan.options.sideThread ??
    (!isInside && readSwitch(runtime.env, "TINKER_SUBPROCESS_SAMPLING", false));
  if (!isAsked) return client;
  const { SideSamplingClient } = await import("./side-thread/side-sampling-client.js");
  return new SideSamplingClient(client, session, tokenizer);
}
