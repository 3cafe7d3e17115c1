import type { Connection } from "../../session/connection.js";
import { SampleGate } from "../../session/sample-gate.js";
import { completeRetryConfig } from "../retry-config.js";
import { Sampler } from "./sampler.js";
import type { SampleTarget, SamplingHost } from "./sampling-host.js";

export { withExtras } from "./sequence-extras.js";

const maxKept = 100;
const kept = new WeakMap<Connection, { host: SamplingHost; samplers: Map<string, Sampler> }>();

/** Makes samples of a model that the request names itself; nothing is opened at the server for it. */
export function samplerWithoutSession(connection: Connection, target: SampleTarget): Sampler {
  const entry = kept.get(connection) ?? { host: hostOf(connection), samplers: new Map() };
  kept.set(connection, entry);
  const { host, samplers } = entry;
  const key = JSON.stringify(target);
  const sampler = samplers.get(key) ?? new Sampler(host, target, completeRetryConfig());
  const oldest = samplers.size >= maxKept ? samplers.keys().next().value : undefined;
  if (oldest !== undefined) samplers.delete(oldest);
  samplers.set(key, sampler);
  return sampler;
}

function hostOf(connection: Connection): SamplingHost {
  const { runtime, telemetry, closed, config } = connection;
  return {
    connection,
    runtime,
    telemetry,
    closed,
    sampleGate: new SampleGate(runtime.clock, config.sampleDispatchBytesSemaphoreSize),
    retrying: (endpoint, call, options) => connection.retrying(endpoint, call, options),
  };
}
