import type { RuntimeOptions } from "../../runtime/runtime.js";
import type { SamplingClient } from "../sampling-client.js";
import { receiveSession } from "./receive-session.js";
import { RemoteSamplingClient } from "./remote-sampling-client.js";
import type { SamplingClientState } from "./transfer-state.js";

/** Rebuilds a sampling client that another thread handed over. */
export async function receiveSamplingClient(
  state: SamplingClientState,
  options: RuntimeOptions,
): Promise<SamplingClient> {
  const { session, firstSeqId, release } = await receiveSession(state, options);
  return new RemoteSamplingClient(session, state.samplingSessionId, state.retryConfig, {
    firstSeqId,
    onClose: release,
  });
}
