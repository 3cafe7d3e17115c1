import { parseJson } from "./json-text.js";
import { MessageReader } from "./proto/message-reader.js";

/** Where a training request stands: its model and its number. */
export interface RequestPlace {
  /** Id of the model. */
  readonly modelId: string;
  /** Number in the order of its requests. */
  readonly seqId: number;
}

/**
 * Reads the place of a training request from a body that may be wrong elsewhere. A server needs it to
 * refuse such a request without leaving a gap in the sequence of its model.
 */
export function readRequestPlace(
  bytes: Uint8Array,
  form: "json" | "proto",
): RequestPlace | undefined {
  try {
    const { modelId, seqId } = form === "proto" ? fromProto(bytes) : fromJson(bytes);
    const isPlace = typeof modelId === "string" && modelId !== "" && Number.isSafeInteger(seqId);
    return isPlace && Number(seqId) >= 1 ? { modelId, seqId: Number(seqId) } : undefined;
  } catch {
    return undefined;
  }
}

function fromProto(bytes: Uint8Array): Record<"modelId" | "seqId", unknown> {
  const r = new MessageReader(bytes);
  let [modelId, seqId] = ["", 0];
  for (let field = r.next(); field >= 0; field = r.next()) {
    if (field === 1) modelId = r.string() ?? modelId;
    else if (field === 2) seqId = r.int32() ?? seqId;
    else r.skip();
  }
  return { modelId, seqId };
}

function fromJson(bytes: Uint8Array): Record<"modelId" | "seqId", unknown> {
  const body = parseJson(new TextDecoder().decode(bytes)) as Record<string, unknown>;
  return { modelId: body["model_id"], seqId: body["seq_id"] };
}
