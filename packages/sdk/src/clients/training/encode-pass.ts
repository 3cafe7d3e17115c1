import { serveEvents } from "../../runtime/serve-events.js";
import type { Dialect } from "../../session/dialect.js";
import type { EncodedBody } from "../../transport/api.js";
import type { Datum } from "../../types/datum.js";
import type { LossFnType } from "../../types/training.js";
import { encodeJson } from "../../wire/json-codec.js";
import { stringifyJson } from "../../wire/json-text.js";
import { canCompress, compressZstd } from "../../wire/zstd.js";

/** A forward or forward/backward pass over some data. */
export interface Pass {
  readonly modelId: string;
  readonly data: readonly Datum[];
  readonly lossFn: LossFnType;
  readonly lossFnConfig: Readonly<Record<string, number>> | null;
  readonly isForwardOnly: boolean;
}

/** The body of a pass and the endpoint that takes it. */
export interface EncodedPass {
  readonly endpoint: "forwardBackward" | "forward";
  readonly body: EncodedBody;
}

// Importing it once more would still ask the module loader.
let protoCodec: typeof import("../../wire/proto-codec.js") | undefined;

const protoHeaders = { "content-type": "application/x-protobuf" };

/** Datums between two looks at the clock while JSON is written. */
const datumsPerSlice = 8;
const sliceMs = 5;

/** Writes the body of a pass in the server's dialect. */
export async function encodePass(
  pass: Pass,
  seqId: number,
  dialect: Dialect,
  options: { readonly compress: boolean },
): Promise<EncodedPass> {
  if (dialect === "json") return encodeAsJson(pass, seqId);
  protoCodec ??= await import("../../wire/proto-codec.js");
  const { data, lossFn, lossFnConfig, modelId, isForwardOnly } = pass;
  const request = {
    forwardBackwardInput: { data, lossFn, lossFnConfig },
    modelId,
    seqId,
    forwardOnly: isForwardOnly,
  };
  const bytes = await protoCodec.encodeForwardBackwardInSlices(request, serveEvents);
  const body: EncodedBody =
    options.compress && canCompress
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
      await serveEvents();
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
