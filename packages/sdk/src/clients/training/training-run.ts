import type { Operation } from "../../futures/operation.js";
import type { AcceptedRequest } from "../../futures/poll-context.js";
import { pollFuture } from "../../futures/poll-future.js";
import type { Cancellation } from "../../runtime/cancellation.js";
import { QueueStateLog } from "../../session/queue-state-log.js";
import type { Session } from "../../session/session.js";
import type { WireTypeName, WireValue } from "../../wire/wire-types.js";
import { TrainingSequence } from "./training-sequence.js";

/** One model in training: where its requests go and in which order. */
export class TrainingRun {
  readonly session: Session;
  readonly modelId: string;
  readonly sequence = new TrainingSequence();
  readonly #queueLog: QueueStateLog;

  constructor(session: Session, modelId: string) {
    this.session = session;
    this.modelId = modelId;
    this.#queueLog = new QueueStateLog(session.runtime, { activity: "Training", name: modelId });
  }

  /** Waits for the result of a request that the server accepted. */
  poll<N extends WireTypeName>(
    request: AcceptedRequest<N>,
    operation: Operation,
    signal: Cancellation = operation.signal,
  ): Promise<WireValue<N>> {
    const { connection, telemetry } = this.session;
    return pollFuture(request, {
      connection,
      telemetry,
      queueLog: this.#queueLog,
      operation,
      signal,
    });
  }
}
