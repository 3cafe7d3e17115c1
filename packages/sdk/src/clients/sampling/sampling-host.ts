import type { Connection } from "../../session/connection.js";
import type { RetryOptions } from "../../session/execute-with-retries.js";
import type { SampleGate } from "../../session/sample-gate.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { TelemetrySink } from "../../telemetry/sink.js";

/** Where samples are made: a session, or a connection without one. */
export interface SamplingHost {
  readonly connection: Connection;
  readonly runtime: Runtime;
  readonly telemetry: TelemetrySink;
  readonly closed: AbortSignal;
  /** Limits on samples that are on their way to the server. */
  readonly sampleGate: SampleGate;
  /** Runs a call in the retry loop. */
  retrying<T>(endpoint: string, call: () => Promise<T>, options?: RetryOptions): Promise<T>;
}

/** What a sample is drawn from, as the request tells it. */
export type SampleTarget =
  | { readonly samplingSessionId: string }
  | { readonly baseModel: string }
  | { readonly modelPath: string };

/** The name of what is sampled from, for messages. */
export function nameOfTarget(target: SampleTarget): string {
  if ("samplingSessionId" in target) return target.samplingSessionId;
  return "baseModel" in target ? target.baseModel : target.modelPath;
}
