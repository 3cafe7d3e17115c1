import { hasProto, type ProtoTypeName } from "tinker-ts/wire";
import type { Core } from "../core.js";
import { bytesResponse, typedResponse } from "../http/answers.js";
import type { HandlersOf } from "../http/call.js";
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
  if (!hasProto(resultType)) return bytesResponse(bytes, "application/json");
  if (acceptsProto) return bytesResponse(bytes, "application/x-protobuf");
  return bytesResponse(await toJson(resultType, bytes), "application/json");
}
