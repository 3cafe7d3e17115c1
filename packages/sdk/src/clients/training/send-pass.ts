import { APIStatusError } from "../../errors/api-error.js";
import type { Operation } from "../../futures/operation.js";
import { yieldToEventLoop } from "../../runtime/yield-to-event-loop.js";
import type { Dialect } from "../../session/dialect.js";
import type { Session } from "../../session/session.js";
import type { Acceptance, EncodedBody } from "../../transport/api.js";
import type { Headers } from "../../transport/message.js";
import type { Datum } from "../../types/datum.js";
import type { LossFnType } from "../../types/training.js";
import { encodeJson } from "../../wire/json-codec.js";
import { stringifyJson } from "../../wire/json-text.js";
import { canCompress, compressZstd } from "../../wire/zstd.js";

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
  const { dialect } = session;
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
    const { api, closed, config, runtime } = session;
    const { endpoint, body } = await encodeInTurn(session, async () => {
      const startedAt = runtime.clock.now();
      const encoded = await encodePass(pass, seqId, form, config.protoCompressFwdbwd);
      operation.spent("encodeMs", startedAt);
      return encoded;
    });
    const sentAt = runtime.clock.now();
    const response = await api.exchange(endpoint, body, {
      signal: closed,
      // A result that comes along is in protobuf.
      ...(form === "proto" ? { headers } : {}),
      ...(isProbe ? { maxRetries: 0 } : { retries: { host: session, operation } }),
    });
    operation.spent("submitMs", sentAt);
    if (!dialect.isSettled) dialect.settle(form);
    return api.readAcceptance(endpoint, response);
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

/** Copying a body of this size takes no noticeable time. */
const smallBytes = 64 * 1024;

/**
 * Runs `encode` when no other encoding of the session runs. Encoding a chunk takes some milliseconds of this thread, so
 * chunks are encoded one after the other with a round of the event loop in between.
 */
async function encodeInTurn(
  { encoding, closed }: Session,
  encode: () => Promise<EncodedPass>,
): Promise<EncodedPass> {
  const isFirst = encoding.tryAcquire();
  if (!isFirst) await encoding.acquire(1, closed);
  try {
    if (!isFirst) await yieldToEventLoop();
    const encoded = await encode();
    // Sending copies the whole body once more; that is a slice of its own.
    if (encoded.body.content.length > smallBytes) await yieldToEventLoop();
    return encoded;
  } finally {
    encoding.release();
  }
}

/** A forward or forward/backward pass over some data. */
export interface Pass {
  readonly modelId: string;
  readonly data: readonly Datum[];
  readonly lossFn: LossFnType;
  readonly lossFnConfig: Readonly<Record<string, number>> | null;
  readonly isForwardOnly: boolean;
}

/** The body of a pass and the endpoint that takes it. */
interface EncodedPass {
  readonly endpoint: "forwardBackward" | "forward";
  readonly body: EncodedBody;
}

// Importing it once more would still ask the module loader.
let protoCodec: typeof import("../../wire/client-codec.js") | undefined;

const protoHeaders = { "content-type": "application/x-protobuf" };

/** Datums between two looks at the clock while JSON is written. */
const datumsPerSlice = 8;
const sliceMs = 5;

/** Writes the body of a pass in the server's dialect. */
async function encodePass(
  pass: Pass,
  seqId: number,
  dialect: Dialect,
  isCompressed: boolean,
): Promise<EncodedPass> {
  if (dialect === "json") return encodeAsJson(pass, seqId);
  protoCodec ??= await import("../../wire/client-codec.js");
  const { data, lossFn, lossFnConfig, modelId, isForwardOnly } = pass;
  const request = {
    forwardBackwardInput: { data, lossFn, lossFnConfig },
    modelId,
    seqId,
    forwardOnly: isForwardOnly,
  };
  const bytes = await protoCodec.encodeForwardBackwardInSlices(request, yieldToEventLoop);
  const body: EncodedBody =
    isCompressed && canCompress
      ? {
          content: await compressZstd(bytes),
          headers: { ...protoHeaders, "content-encoding": "zstd" },
        }
      : { content: bytes, headers: protoHeaders };
  return { endpoint: "forwardBackward", body };
}

/**
 * JSON is some twenty times slower to write than protobuf, so it is written datum by datum and other
 * work gets its turn in between.
 */
async function encodeAsJson(pass: Pass, seqId: number): Promise<EncodedPass> {
  const { modelId, lossFn, lossFnConfig, isForwardOnly } = pass;
  const input = { data: [], lossFn, lossFnConfig };
  const frame = stringifyJson(
    isForwardOnly
      ? encodeJson("ForwardRequest", { forwardInput: input, modelId, seqId })
      : encodeJson("ForwardBackwardRequest", { forwardBackwardInput: input, modelId, seqId }),
  );
  // The empty list of data is the first thing in the frame.
  const dataAt = frame.indexOf("[]");
  const parts: string[] = [];
  let sliceStartedAt = performance.now();
  for (const [index, datum] of pass.data.entries()) {
    parts.push(stringifyJson(encodeJson("Datum", datum)));
    if (index % datumsPerSlice === 0 && performance.now() - sliceStartedAt > sliceMs) {
      await yieldToEventLoop();
      sliceStartedAt = performance.now();
    }
  }
  return {
    endpoint: isForwardOnly ? "forward" : "forwardBackward",
    body: {
      content: `${frame.slice(0, dataAt)}[${parts.join(",")}]${frame.slice(dataAt + 2)}`,
    },
  };
}
