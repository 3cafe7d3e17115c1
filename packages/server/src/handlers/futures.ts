import { encodeJson, hasProto, type ProtoTypeName, type WireInput } from "tinker-ts/wire";
import type { Core } from "../core.js";
import { bytesResponse, jsonResponse, typedResponse } from "../http/answers.js";
import type { Call, HandlersOf } from "../http/call.js";
import type { Settled } from "../store/requests-table.js";

/** Fetching results. */
export function futureHandlers({ context, futures }: Core): HandlersOf<"retrieveFuture"> {
  return {
    async retrieveFuture({ caller, body, headers, signal }) {
      const answer = await futures.retrieve(caller, body, signal);
      if (answer.kind === "pending") {
        const { queueState, reason: queueStateReason } = answer.note;
        const { requestId } = body;
        const again = { type: "try_again", requestId, queueState, queueStateReason } as const;
        return typedResponse("TryAgainResponse", again, 408);
      }
      if (answer.kind === "announced") {
        return typedResponse("CompleteMetadataResponse", {
          status: "complete_metadata",
          responsePayloadSize: answer.sizeBytes,
        });
      }
      const acceptsProto = headers.get("accept")?.includes("application/x-protobuf") ?? false;
      const toJson: ToJson = (...result) => context.passes.toJson(caller.owner, ...result);
      return settledResponse(answer.settled, acceptsProto, toJson);
    },
  };
}

/** Longest time for which the answer to an accepted request is held back. */
const maxHoldMs = 1000;

/**
 * Has a request accepted and answers it. A client that says how long it likes to wait gets the result itself,
 * as a poll would, when that is there by then; the header names the request.
 */
export async function acceptAndAnswer(
  { futures, context: { clock } }: Core,
  { caller, headers, signal }: Call,
  accept: (holdMs: number) => Promise<WireInput<"UntypedAPIFuture">>,
): Promise<WireInput<"UntypedAPIFuture"> | Response> {
  const holdMs = holdMsOf(headers);
  const endMs = clock.elapsed() + holdMs;
  const accepted = await accept(holdMs);
  if (holdMs === 0) return accepted;
  const { requestId } = accepted;
  const restMs = Math.max(0, endMs - clock.elapsed());
  const settled = await futures.soon(caller, requestId, restMs, signal);
  if (!settled) return accepted;
  const along = { "x-tinker-result-of": requestId, ...timingOf(settled) };
  if (settled.state === "failed") {
    const { error, category } = settled;
    return jsonResponse(encodeJson("RequestFailedResponse", { error, category }), 200, along);
  }
  const { resultType, bytes } = settled;
  const mediaType = hasProto(resultType) ? "application/x-protobuf" : "application/json";
  return bytesResponse(bytes, mediaType, along);
}

/** How long a client likes to wait for the result itself; most do not say so. */
function holdMsOf(headers: Headers): number {
  const holdMs = Number(headers.get("x-tinker-hold-ms") ?? 0);
  return holdMs > 0 ? Math.min(holdMs, maxHoldMs) : 0;
}

/** Turns a result into JSON. */
type ToJson = (typeName: ProtoTypeName, bytes: Uint8Array) => Promise<Uint8Array>;

/** Results of types with a binary form are kept in it; all others are kept as JSON. */
async function settledResponse(
  settled: Settled,
  acceptsProto: boolean,
  toJson: ToJson,
): Promise<Response> {
  if (settled.state === "failed") {
    const { error, category } = settled;
    return typedResponse("RequestFailedResponse", { error, category });
  }
  const { resultType, bytes } = settled;
  const timing = timingOf(settled);
  if (!hasProto(resultType)) return bytesResponse(bytes, "application/json", timing);
  if (acceptsProto) return bytesResponse(bytes, "application/x-protobuf", timing);
  return bytesResponse(await toJson(resultType, bytes), "application/json", timing);
}

/** How long the engine took, in the header that browsers and proxies know. */
function timingOf(settled: Settled): Record<string, string> {
  if (settled.state === "failed" || settled.engineMs === undefined) return {};
  return { "server-timing": `engine;dur=${settled.engineMs.toFixed(2)}` };
}
