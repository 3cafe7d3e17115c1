import { APIStatusError } from "../../errors/api-error.js";
import type { Operation } from "../../futures/operation.js";
import type { Dialect } from "../../session/dialect.js";
import type { Session } from "../../session/session.js";
import type { Acceptance } from "../../transport/acceptance.js";
import type { Headers } from "../../transport/message.js";
import { inEncodeLane } from "./encode-lane.js";
import { encodePass, type Pass } from "./encode-pass.js";

/**
 * Sends one pass in the form that the server takes. While that is not settled, a body that may have been
 * refused for its form is sent in the other one too; the number stays the same, so it runs once.
 *
 * - A refusal that is clearly about the form (415, or words to that effect) is followed by an ordinary
 *   request in the other form.
 * - One that may be about the content is followed by a single try. When that is not accepted either, the
 *   first refusal is what the caller sees: it is the one in the form that the server seems to speak.
 */
export async function sendPass(
  session: Session,
  operation: Operation,
  pass: Pass,
  seqId: number,
  headers: Headers = {},
): Promise<Acceptance> {
  const { dialect } = session.connection;
  const first = dialect.current;
  try {
    return await sendAs(first);
  } catch (error) {
    if (!mayBeAboutForm(error, pass)) throw error;
    const other = first === "proto" ? "json" : "proto";
    // Another chunk may have found out meanwhile.
    if (dialect.isSettled) {
      if (dialect.current === first) throw error;
      return sendAs(other);
    }
    if (isAboutForm(error, pass)) {
      return sendAs(other).catch((second: unknown) => {
        // Refused for its form in both: then the first refusal was not about the form.
        throw mayBeAboutForm(second, pass) ? error : second;
      });
    }
    return sendAs(other, { isProbe: true }).catch(() => {
      throw error;
    });
  }

  async function sendAs(form: Dialect, { isProbe = false } = {}): Promise<Acceptance> {
    const { connection, closed, runtime } = session;
    const { endpoint, body } = await inEncodeLane(async () => {
      const startedAt = runtime.clock.now();
      const compress = connection.config.protoCompressFwdbwd;
      const encoded = await encodePass(pass, seqId, form, { compress });
      operation.spent("encodeMs", startedAt);
      return encoded;
    }, closed);
    // A result that comes along is in protobuf.
    const options = { signal: closed, ...(form === "proto" ? { headers } : {}) };
    const sentAt = runtime.clock.now();
    const response = isProbe
      ? await connection.api.exchange(endpoint, body, { ...options, maxRetries: 0 })
      : await session.retrying(endpoint, () => connection.api.exchange(endpoint, body, options), {
          signal: closed,
          keeper: operation,
        });
    operation.spent("submitMs", sentAt);
    dialect.settle(form);
    return connection.api.readAcceptance(endpoint, response);
  }
}

/** 415 and 422 may be about the form of a body; a server without `/forward` takes protobuf only. */
function mayBeAboutForm(error: unknown, pass: Pass): error is APIStatusError {
  if (!(error instanceof APIStatusError)) return false;
  const { status } = error;
  return status === 415 || status === 422 || (pass.isForwardOnly && status === 404);
}

const wordsAboutForm = /json|protobuf|media.?type|content.?type|utf-?8|decod|pars|dictionary/i;

function isAboutForm(error: APIStatusError, pass: Pass): boolean {
  if (error.status === 415 || (pass.isForwardOnly && error.status === 404)) return true;
  return wordsAboutForm.test(error.message);
}
