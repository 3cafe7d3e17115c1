import type { QueueState } from "../types/futures.js";
import type { Logger } from "./logger.js";

/** Kinds of work that a client does for its caller. */
export type OperationName =
  | "createModel"
  | "forward"
  | "forwardBackward"
  | "forwardBackwardCustom"
  | "optimStep"
  | "saveState"
  | "saveWeightsForSampler"
  | "loadState"
  | "sample"
  | "computeLogprobs";

/** Something that happened inside a client, for `onEvent`. */
export type ClientEvent =
  | {
      readonly type: "operationStart";
      readonly operationId: number;
      readonly operation: OperationName;
      /** The model, sampling session or base model it is about. */
      readonly subject: string;
    }
  | {
      readonly type: "operationEnd";
      readonly operationId: number;
      readonly operation: OperationName;
      readonly subject: string;
      readonly durationMs: number;
      readonly requestIds: readonly string[];
      /** What it failed with; absent on success. */
      readonly error?: unknown;
    }
  | {
      readonly type: "retry";
      /** The endpoint, by its name in the route table. */
      readonly endpoint: string;
      /** Who tries again: one HTTP call, the loop around it, a poll, or a whole sample. */
      readonly by: "http" | "call" | "poll" | "sample";
      readonly status: number | null;
      readonly message: string;
      readonly delayMs: number;
    }
  | {
      readonly type: "queueState";
      readonly subject: string;
      readonly requestId: string;
      readonly queueState: QueueState;
      readonly reason: string | null;
    }
  | { readonly type: "sessionStart"; readonly sessionId: string }
  | { readonly type: "heartbeatFailed"; readonly sessionId: string; readonly error: unknown }
  /** The server has ended the session; the next client gets a new one. */
  | { readonly type: "sessionOver"; readonly sessionId: string; readonly error: unknown }
  | { readonly type: "dialect"; readonly dialect: "proto" | "json"; readonly reason: string }
  | { readonly type: "billingPause"; readonly message: string }
  | { readonly type: "telemetryDropped"; readonly events: number };

/** Listens to what a client does. */
export type EventListener = (event: ClientEvent) => void;

/** Hands events to listeners; one that throws is reported once and does no harm. */
export class EventHub {
  readonly #listeners = new Set<EventListener>();
  readonly #logger: Logger;
  #hasComplained = false;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Whether anybody listens; saves building events that nobody sees. */
  get isActive(): boolean {
    return this.#listeners.size > 0;
  }

  subscribe(listener: EventListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  emit(event: ClientEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (error) {
        if (this.#hasComplained) continue;
        this.#hasComplained = true;
        this.#logger.error(`an onEvent listener threw and is ignored: ${String(error)}`);
      }
    }
  }
}
