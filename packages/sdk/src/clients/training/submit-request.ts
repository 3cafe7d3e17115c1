import type { Operation } from "../../futures/operation.js";
import { abortable } from "../../runtime/abortable.js";
import type { Turn } from "../../runtime/turn-line.js";
import { holdHeaders, type Acceptance } from "../../transport/acceptance.js";
import type { RequestOf } from "../../transport/api.js";
import type { TrainingRun } from "./training-run.js";

/** Training requests that are small and travel as JSON. */
export type SmallEndpoint = "optimStep" | "saveWeights" | "saveWeightsForSampler" | "loadWeights";

/**
 * Sends one small request when its turn comes.
 *
 * An operation that is given up while it waits is not sent. One that is given up while it is being
 * sent goes on until it is known whether the server has it; only then may the next one go.
 */
export async function submitRequest<E extends SmallEndpoint>(
  run: TrainingRun,
  operation: Operation,
  turn: Turn,
  endpoint: E,
  build: (seqId: number) => RequestOf<E>,
): Promise<Acceptance> {
  const { session, sequence } = run;
  const { clock } = session.runtime;
  const waitStartedAt = clock.now();
  try {
    await abortable(turn.ready, operation.signal);
    sequence.assertIntact();
  } catch (error) {
    turn.end();
    throw error;
  }
  operation.spent("waitMs", waitStartedAt);
  return abortable(send(), operation.signal);

  async function send(): Promise<Acceptance> {
    const sentAt = clock.now();
    const { closed, connection } = session;
    try {
      const request = build(sequence.next);
      const headers = holdHeaders({ isAlone: sequence.isAlone });
      const accepted = await session.retrying(
        endpoint,
        () => connection.api.submit(endpoint, request, { signal: closed, headers }),
        { signal: closed, keeper: operation },
      );
      sequence.advance(1);
      operation.accepted(accepted.requestId);
      return accepted;
    } catch (error) {
      sequence.noteFailure(`${operation.name} (seq_id ${sequence.next})`, error);
      throw error;
    } finally {
      operation.spent("submitMs", sentAt);
      turn.end();
    }
  }
}
