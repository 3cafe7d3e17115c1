import { parentPort } from "node:worker_threads";
import type { WireValue } from "tinker-ts/wire";
import { ApiError } from "../errors/api-error.js";
import { decodeBody } from "./decode-body.js";
import type { DecodeAnswer, DecodeOrder } from "./messages.js";
import { UndecodableBody } from "./undecodable-body.js";

/* The thread that decodes large bodies, one at a time. */

const port = parentPort;
if (!port) throw new Error("this file is the program of a thread");

port.on("message", (order: DecodeOrder) => {
  answer(order).then(
    (message) => port.postMessage(message, transferable(message)),
    (error: unknown) =>
      port.postMessage({ id: order.id, ...refusal(error) } satisfies DecodeAnswer),
  );
});

async function answer({ id, parts, form }: DecodeOrder): Promise<DecodeAnswer> {
  const [first, ...others] = parts;
  const bytes = first && others.length === 0 ? first : Buffer.concat(parts);
  const value = await decodeBody(bytes, form);
  if (form.typeName !== "SampleRequest") return { id, kind: "value", value };
  const { prompt, ...rest } = value as WireValue<"SampleRequest">;
  return { id, kind: "sample", value: rest, chunks: prompt.chunks };
}

function refusal(error: unknown) {
  if (error instanceof UndecodableBody) {
    const { message, place } = error;
    return { kind: "undecodable", message, place } as const;
  }
  if (error instanceof ApiError) {
    return { kind: "refused", status: error.status, message: error.message } as const;
  }
  return {
    kind: "broken",
    error: error instanceof Error ? (error.stack ?? "") : String(error),
  } as const;
}

/** Memory that is given away instead of being copied: what a pass is kept as. */
function transferable(message: DecodeAnswer): ArrayBuffer[] {
  if (message.kind !== "value") return [];
  const payload = (message.value as { payload?: unknown } | null)?.payload;
  const isOwned =
    payload instanceof Uint8Array &&
    payload.buffer instanceof ArrayBuffer &&
    payload.byteLength === payload.buffer.byteLength;
  return isOwned ? [payload.buffer] : [];
}
