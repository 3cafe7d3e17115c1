import type { SamplingClientState } from "../sampling/transfer-state.js";
import type { SampleResponse } from "../../types/sampling.js";
import type { ErrorRecord } from "./error-record.js";

/** What can be asked of a client in the side thread. */
export type SideCall =
  | { readonly method: "sample"; readonly options: object }
  | { readonly method: "computeLogprobs"; readonly prompt: unknown; readonly options: object };

/** A sample on its way between threads, which carry listed fields only. */
export interface PostedSample extends SampleResponse {
  readonly sequenceIds: readonly (string | undefined)[];
}

/** From the main thread to the side thread. */
export type SideRequest =
  | { readonly type: "register"; readonly targetId: number; readonly state: SamplingClientState }
  | { readonly type: "drop"; readonly callId: number; readonly targetId: number }
  | {
      readonly type: "call";
      readonly callId: number;
      readonly targetId: number;
      readonly call: SideCall;
    }
  | { readonly type: "cancel"; readonly callId: number };

/** From the side thread to the main thread. */
export type SideAnswer =
  | { readonly type: "ready" }
  | { readonly type: "result"; readonly callId: number; readonly value: unknown }
  | { readonly type: "error"; readonly callId: number; readonly error: ErrorRecord };
