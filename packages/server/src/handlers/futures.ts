import { decodeProto, encodeJson, hasProto } from "tinker-ts/wire";
import type { Core } from "../core.js";
import { bytesResponse, jsonResponse, typedResponse } from "../http/answers.js";
import type { HandlersOf } from "../http/call.js";
import type { Settled } from "../store/requests-table.js";

/** Fetching results. */
export function futureHandlers({ futures }: Core): HandlersOf<"retrieveFuture"> {
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
      return settledResponse(answer.settled, acceptsProto);
    },
  };
}

/** Results of types with a binary form are kept in it; all others are kept as JSON. */
function settledResponse(settled: Settled, acceptsProto: boolean): Response {
  if (settled.state === "failed") {
    const { error, category } = settled;
    return typedResponse("RequestFailedResponse", { error, category });
  }
  const { resultType, bytes } = settled;
  if (!hasProto(resultType)) return bytesResponse(bytes, "application/json");
  if (acceptsProto) return bytesResponse(bytes, "application/x-protobuf");
  return jsonResponse(encodeJson(resultType, decodeProto(resultType, bytes)));
}
