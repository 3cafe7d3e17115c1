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
  | "saveWeightsExternal"
  | "loadState"
  | "sample"
  | "computeLogprobs";

/** Something that happened inside a client, for `onEvent`. */
export type ClientEvent =
  | {
      /** An operation was called. */
      readonly type: "operationStart";
      /** Number of the operation within this process; its end has the same. */
      readonly operationId: number;
      /** What is done. */
      readonly operation: OperationName;
      /** The model, sampling session or base model it is about. */
      readonly subject: string;
    }
  | {
      /** An operation is over. */
      readonly type: "operationEnd";
      /** Number of the operation within this process; its start had the same. */
      readonly operationId: number;
      /** What was done. */
      readonly operation: OperationName;
      /** The model, sampling session or base model it was about. */
      readonly subject: string;
      /** From the call to the end, in milliseconds. */
      readonly durationMs: number;
      /** The server's ids, one per chunk. */
      readonly requestIds: readonly string[];
      /** What it failed with; absent on success. */
      readonly error?: unknown;
    }
  | {
      /** Something failed and is tried again. */
      readonly type: "retry";
      /** The endpoint, by its name in the route table. */
      readonly endpoint: string;
      /** Who tries again: one HTTP call, the loop around it, a poll, or a whole sample. */
      readonly by: "http" | "call" | "poll" | "sample";
      /** The HTTP status, or null when no answer arrived. */
      readonly status: number | null;
      /** What went wrong, in words. */
      readonly message: string;
      /** Wait until the next try, in milliseconds. */
      readonly delayMs: number;
    }
  | {
      /** The server reported the state of its queue. */
      readonly type: "queueState";
      /** The model or sampling session that waits. */
      readonly subject: string;
      /** The server's id of the request. */
      readonly requestId: string;
      /** What the request is waiting for. */
      readonly queueState: QueueState;
      /** The server's words for why; null when it is not paused. */
      readonly reason: string | null;
    }
  | {
      /** A session was opened. */
      readonly type: "sessionStart";
      /** Id of the session. */
      readonly sessionId: string;
    }
  | {
      /** A heartbeat did not reach the server; the next one follows. */
      readonly type: "heartbeatFailed";
      /** Id of the session. */
      readonly sessionId: string;
      /** Why. */
      readonly error: unknown;
    }
  | {
      /** The server has ended the session; the next client gets a new one. */
      readonly type: "sessionOver";
      /** Id of the session. */
      readonly sessionId: string;
      /** The server's answer. */
      readonly error: unknown;
    }
  | {
      /** The form of large messages was settled. */
      readonly type: "dialect";
      /** The form from now on. */
      readonly dialect: "proto" | "json";
      /** Why it was chosen. */
      readonly reason: string;
    }
  | {
      /** The account must be topped up; work waits. */
      readonly type: "billingPause";
      /** The server's words. */
      readonly message: string;
    }
  | {
      /** Reports to the service were dropped. */
      readonly type: "telemetryDropped";
      /** How many. */
      readonly events: number;
    };

/** Listens to what a client does. */
export type EventListener = (event: ClientEvent) => void;

/** Calls listeners with events; one that throws is reported once and does no harm. */
export class EventHub {
  readonly #listeners = new Set<EventListener>();
  readonly #logger: Logger;
  #hasComplained = false;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** True while there are listeners; without any, events need not be built. */
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
