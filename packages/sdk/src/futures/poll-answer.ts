import { WireError } from "../errors/wire-error.js";
import type { HttpResponse } from "../transport/message.js";
import type {
  CompleteMetadataResponse,
  RequestFailedResponse,
  TryAgainResponse,
} from "../types/futures.js";
import { guardWire } from "../wire/guard-wire.js";
import { decodeJson } from "../wire/json-codec.js";
import { parseJson, stringifyJson } from "../wire/json-text.js";
import type { WireTypeName, WireValue } from "../wire/wire-types.js";

/** How a request that is not done yet stands. */
export type PendingAnswer = Pick<TryAgainResponse, "queueState" | "queueStateReason">;

/** What the server says when it is asked for a result; there is no envelope around it. */
export type PollAnswer<N extends WireTypeName> =
  | { readonly kind: "pending"; readonly answer: PendingAnswer }
  | { readonly kind: "announced"; readonly answer: CompleteMetadataResponse }
  | { readonly kind: "failed"; readonly answer: RequestFailedResponse }
  | { readonly kind: "result"; readonly form: "proto" | "json"; readonly value: WireValue<N> };

const decoder = new TextDecoder("utf-8", { fatal: true });

type ProtoCodec = typeof import("../wire/proto-codec.js");
let protoCodec: ProtoCodec | undefined;

/**
 * Reads the answer to a poll for a result of type `typeName`; throws `WireError`. The first protobuf has
 * to wait for what reads it.
 */
export function readPollAnswer<N extends WireTypeName>(
  typeName: N,
  { headers, body }: HttpResponse,
): PollAnswer<N> | Promise<PollAnswer<N>> {
  if (!headers["content-type"]?.includes("application/x-protobuf")) {
    return readJsonAnswer(typeName, body);
  }
  if (protoCodec) return readProtoAnswer(protoCodec, typeName, body);
  return import("../wire/proto-codec.js").then((loaded) => {
    protoCodec = loaded;
    return readProtoAnswer(loaded, typeName, body);
  });
}

function readProtoAnswer<N extends WireTypeName>(
  { hasProto, decodeProto }: ProtoCodec,
  typeName: N,
  body: Uint8Array,
): PollAnswer<N> {
  if (!hasProto(typeName)) {
    throw new WireError("decode", typeName, "", "the server sent protobuf, expected JSON");
  }
  return { kind: "result", form: "proto", value: decodeProto(typeName, body) };
}

function readJsonAnswer<N extends WireTypeName>(typeName: N, body: Uint8Array): PollAnswer<N> {
  const json = guardWire(typeName, "decode", () => parseJson(decoder.decode(body)));
  const fields = typeof json === "object" && json !== null ? (json as Record<string, unknown>) : {};
  if (fields["type"] === "try_again") {
    return { kind: "pending", answer: readPending(fields) };
  }
  if (fields["status"] === "complete_metadata") {
    return { kind: "announced", answer: decodeJson("CompleteMetadataResponse", json) };
  }
  if ("error" in fields) {
    return {
      kind: "failed",
      answer: decodeJson("RequestFailedResponse", {
        ...fields,
        error: wordsOf(fields["error"]),
        category: typeof fields["category"] === "string" ? fields["category"] : "unknown",
      }),
    };
  }
  return { kind: "result", form: "json", value: decodeJson(typeName, json) };
}

/** That it is pending is all that must be told; the rest helps where it is there. */
function readPending(fields: Readonly<Record<string, unknown>>): PendingAnswer {
  const { queue_state: queueState, queue_state_reason: reason } = fields;
  return {
    queueState: typeof queueState === "string" ? queueState : "unknown",
    queueStateReason: typeof reason === "string" ? reason : null,
  };
}

/** Whatever the server put where its words belong. */
function wordsOf(error: unknown): string {
  if (typeof error === "string" && error !== "") return error;
  return error === null || error === "" ? "The server gave no reason." : stringifyJson(error);
}
