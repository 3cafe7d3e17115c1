import { platform } from "../../runtime/platform.js";
import { createRuntime, type RuntimeOptions } from "../../runtime/runtime.js";
import { checkOptions } from "../../errors/check-options.js";
import { connectionOptions, planConnection } from "../../session/connection-plan.js";
import { hasFlag } from "../../session/flags.js";
import { openConnection } from "../../session/open-connection.js";
import { joinSession } from "../../session/open-session.js";
import type { Session } from "../../session/session.js";
import { readSamplerHandle, type SamplingClientState } from "./transfer-state.js";
import type { SamplerHandleOptions, SamplingClient } from "../sampling-client.js";
import { RemoteSamplingClient } from "./remote-sampling-client.js";

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

/** Opens a connection of its own to a sampler, and has the server number this client where it does that. */
export async function openSamplerHandle(
  handle: string,
  { retryConfig, clock, random, env, logger, ...given }: SamplerHandleOptions,
): Promise<SamplingClient> {
  const { sessionId, samplingSessionId, baseUrl } = readSamplerHandle(handle);
  const runtime = createRuntime({ clock, random, env, logger });
  const options = given.baseUrl === undefined && baseUrl ? { ...given, baseUrl } : given;
  checkOptions(options, [connectionOptions]);
  const plan = planConnection(options, runtime);
  const connection = await openConnection(plan);
  try {
    const joins = hasFlag(connection.config, "sample_join_sampling_session");
    const firstSeqId = joins
      ? rangeSize *
        (await connection.call("joinSamplingSession", { samplingSessionId })).clientCounter
      : randomRange();
    const session = joinSession(connection, sessionId);
    return new RemoteSamplingClient(session, samplingSessionId, retryConfig, {
      firstSeqId,
      onClose: async () => {
        session.stop();
        await connection.close();
      },
    });
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** Numbers that a copy may use; far more than it ever will. */
const rangeSize = 10 ** 9;
const rangeCount = Math.floor(Number.MAX_SAFE_INTEGER / rangeSize) - 1;

/** A session that copies of sampling clients in this thread share. */
interface SharedSession {
  readonly session: Promise<Session>;
  users: number;
}

const shared = new Map<string, SharedSession>();

/** A session in this thread, and the first number that its copy of a client may use. */
export interface ReceivedSession {
  readonly session: Session;
  readonly firstSeqId: number;
  readonly release: () => Promise<void>;
}

/**
 * Takes part in a session from another thread: no new session, no questions to the server, and a range
 * of numbers of its own, so that no two copies use the same number.
 */
export async function receiveSession(
  state: SamplingClientState,
  options: RuntimeOptions,
): Promise<ReceivedSession> {
  const key = JSON.stringify([state.sessionId, state.options]);
  const entry = shared.get(key) ?? { session: join(state, options), users: 0 };
  shared.set(key, entry);
  entry.users++;
  let isReleased = false;
  const release = async (): Promise<void> => {
    if (isReleased) return;
    isReleased = true;
    if (--entry.users > 0) return;
    shared.delete(key);
    const session = await entry.session;
    session.stop();
    await session.close();
  };
  try {
    return { session: await entry.session, firstSeqId: randomRange(), release };
  } catch (error) {
    shared.delete(key);
    throw error;
  }
}

async function join(state: SamplingClientState, options: RuntimeOptions): Promise<Session> {
  const { env = platform.env } = options;
  const runtime = createRuntime({
    ...options,
    env: { ...env, TINKER_CREDENTIAL_CMD: state.credentialCommand },
  });
  const plan = planConnection(state.options, runtime);
  const connection = await openConnection(plan, { snapshot: state.snapshot });
  return joinSession(connection, state.sessionId);
}

function randomRange(): number {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  const random = (high * 2 ** 20 + (low >>> 12)) / 2 ** 52;
  return rangeSize * (1 + Math.floor(random * rangeCount));
}
