import type { RouteName } from "tinker-ts/wire";
import type { ServerLimits } from "../prices.js";

/** What holds for the body of an endpoint. */
export interface BodyRules {
  readonly maxBytes: number;
  /** After decompression. */
  readonly maxDecompressedBytes: number;
  /** Signs of life, polls and the end of a model: never refused because others have sent a lot. */
  readonly isSignal: boolean;
}

/** Room for everything but data: metadata are bounded more tightly by themselves. */
const plainBytes = 192 * 1024;
const signalBytes = 16 * 1024;
const telemetryBytes = 1024 * 1024;
/** Room for what is sampled from. */
export const promptBytes = 4 * 1024 * 1024;

const signals: ReadonlySet<RouteName> = new Set<RouteName>([
  "sessionHeartbeat",
  "retrieveFuture",
  "retrieveFutures",
  "cancelFuture",
  "unloadModel",
]);

const ownBytes: Partial<Record<RouteName, number>> = {
  forward: Infinity,
  forwardBackward: Infinity,
  sample: promptBytes,
  streamSample: promptBytes,
  telemetry: telemetryBytes,
};

/** The rules for an endpoint; only data of training may be really large. */
export function bodyRules(name: RouteName, limits: ServerLimits): BodyRules {
  const isSignal = signals.has(name);
  const bytes = ownBytes[name] ?? (isSignal ? signalBytes : plainBytes);
  return {
    maxBytes: Math.min(bytes, limits.maxBodyBytes),
    maxDecompressedBytes: Math.min(bytes, limits.maxDecompressedBytes),
    isSignal,
  };
}
