import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import type { SampleResponse, SamplingClient, SamplingParamsInput } from "tinker-ts";
import { CliError } from "../errors/cli-error.js";
import { refusalOf } from "./refusal.js";
import type { OpenService } from "./with-service.js";

/** What to sample. */
export interface SampleOrder {
  readonly prompt: readonly number[];
  readonly samplingParams: SamplingParamsInput;
  readonly numSamples: number;
}

/** Hears of every token as it is sampled. */
export type OnToken = (sampleIndex: number, token: number) => void;

/**
 * Samples and tells of tokens as they come, where the server can stream; elsewhere they all come at
 * the end.
 */
export async function sampleStreaming(
  open: OpenService,
  sampling: SamplingClient,
  order: SampleOrder,
  onToken: OnToken,
): Promise<SampleResponse> {
  const streamed = await stream(open, sampling, order, onToken);
  if (streamed) return streamed;
  const { prompt, ...rest } = order;
  const response = await sampling.sample({ prompt: [...prompt], ...rest, ...open.bounds });
  for (const [index, { tokens }] of response.sequences.entries()) {
    for (const token of tokens) onToken(index, token);
  }
  return response;
}

/** Statuses of servers that do not know the endpoint, or want a credential that only the client has. */
const cannotStream = new Set([401, 403, 404, 405, 501]);

async function stream(
  { fetchPath, bounds }: OpenService,
  sampling: SamplingClient,
  order: SampleOrder,
  onToken: OnToken,
): Promise<SampleResponse | undefined> {
  const { encodeJson, decodeJson, stringifyJson, ModelInput } = await import("tinker-ts/wire");
  const body = encodeJson("SampleRequest", {
    prompt: ModelInput.fromInts([...order.prompt]),
    numSamples: order.numSamples,
    samplingParams: order.samplingParams,
    samplingSessionId: sampling.samplingSessionId,
  });
  const { signal, timeoutMs } = bounds;
  const response = await fetchPath("/api/v1/stream_sample", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: stringifyJson(body),
    signal:
      timeoutMs === undefined ? signal : AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  });
  if (!response.ok || !response.body) {
    const reason = await refusalOf(response);
    if (cannotStream.has(response.status)) return undefined;
    throw new CliError("The server refused the prompt.", reason);
  }
  const lines = createInterface({
    input: Readable.fromWeb(response.body as ReadableStream<Uint8Array>),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
  for await (const line of lines) {
    const json = JSON.parse(line) as Record<string, unknown>;
    if (typeof json["error"] === "string") throw new CliError("Sampling failed.", json["error"]);
    if ("sequences" in json) return decodeJson("SampleResponse", json);
    onToken(Number(json["index"]), Number(json["token"]));
  }
  signal.throwIfAborted();
  throw new CliError("Sampling failed.", "The server broke off in the middle of its answer.");
}
