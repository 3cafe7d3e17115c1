import { APIStatusError } from "../../errors/api-error.js";
import type { Operation } from "../../futures/operation.js";
import type { Dialect } from "../../session/dialect.js";
import type { Session } from "../../session/session.js";
import type { UntypedAPIFuture } from "../../types/futures.js";
import { inEncodeLane } from "./encode-lane.js";
import { encodePass, type Pass } from "./encode-pass.js";

/**
 * Sends one pass in the form that the server takes. While that is not settled, a body that is refused
 * for its form is sent once more in the other one; the number stays the same, so it runs once.
 */
export async function sendPass(
  session: Session,
  operation: Operation,
  pass: Pass,
  seqId: number,
): Promise<UntypedAPIFuture> {
  const { dialect } = session.connection;
  const first = dialect.current;
  try {
    return await sendAs(first);
  } catch (error) {
    if (dialect.isSettled || !isRefusedForItsForm(error, pass)) throw error;
    return sendAs(first === "proto" ? "json" : "proto").catch((second: unknown) => {
      // Refused in both forms: then the first refusal was not about the form.
      throw isRefusedForItsForm(second, pass) ? error : second;
    });
  }

  async function sendAs(form: Dialect): Promise<UntypedAPIFuture> {
    const { connection, closed, runtime } = session;
    const { endpoint, body } = await inEncodeLane(async () => {
      const startedAt = runtime.clock.now();
      const compress = connection.config.protoCompressFwdbwd;
      const encoded = await encodePass(pass, seqId, form, { compress });
      operation.spent("encodeMs", startedAt);
      return encoded;
    }, closed);
    const sentAt = runtime.clock.now();
    const response = await session.retrying(
      endpoint,
      () => connection.api.exchange(endpoint, body, { signal: closed }),
      { signal: closed, onAttempt: operation.failedAttempt },
    );
    operation.spent("submitMs", sentAt);
    dialect.settle(form);
    return connection.api.read(endpoint, response);
  }
}

/** 415 and 422 are about the form of a body; a server without `/forward` takes protobuf only. */
function isRefusedForItsForm(error: unknown, pass: Pass): boolean {
  if (!(error instanceof APIStatusError)) return false;
  const { status } = error;
  return status === 415 || status === 422 || (pass.isForwardOnly && status === 404);
}
