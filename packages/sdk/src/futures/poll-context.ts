import type { Cancellation } from "../runtime/cancellation.js";
import type { Connection } from "../session/connection.js";
import type { QueueStateLog } from "../session/queue-state-log.js";
import type { TelemetrySink } from "../telemetry/sink.js";
import type { Acceptance } from "../transport/acceptance.js";
import type { WireTypeName } from "../wire/wire-types.js";
import type { Operation } from "./operation.js";

/** Kinds of requests, as the server's statistics name them. */
export type RequestType =
  | "CreateModel"
  | "Forward"
  | "ForwardBackward"
  | "OptimStep"
  | "SaveWeights"
  | "SaveWeightsForSampler"
  | "LoadWeights"
  | "Sample";

/** A request that the server has accepted, and what its result will be. */
export interface AcceptedRequest<N extends WireTypeName> extends Acceptance {
  readonly requestType: RequestType;
  readonly resultType: N;
  /** From the start of the operation to the acceptance. */
  readonly roundTripMs: number;
}

/** What a poll needs besides the request. */
export interface PollContext {
  readonly connection: Connection;
  readonly telemetry: TelemetrySink;
  readonly queueLog: QueueStateLog;
  readonly operation: Operation;
  /** Gives the waiting up. */
  readonly signal: Cancellation;
}
