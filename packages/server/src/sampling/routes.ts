import { encodeJson, stringifyJson } from "tinker-ts/wire";
import { notFound } from "../errors/api-error.js";
import { toFailure } from "../errors/failure.js";
import type { HandlersOf } from "../http/call.js";
import { idempotencyKeyOf, sampleSequenceIds } from "../journal/journal.js";
import type { Results } from "../journal/results.js";
import type { Logger } from "../log/logger.js";
import type { Store } from "../store/store.js";
import type { FinishedSamples } from "./finished-samples.js";
import { toPairs } from "./sample-options.js";
import type { Sampler } from "./sampler.js";
import type { WhenReady } from "./sample-requests.js";
import type { SamplingSessions } from "./sampling-sessions.js";
import type { OnToken, SampleStream, SampleStreams } from "./streams.js";

/** What the routes of sampling work with. */
export interface SamplingRouteParts {
  readonly store: Store;
  readonly samplingSessions: SamplingSessions;
  readonly sampler: Sampler;
  readonly streams: SampleStreams;
  readonly finishedSamples: FinishedSamples;
  readonly results: Results;
  readonly logger: Logger;
}

/** Sampling sessions, accepted samples, and streams of tokens. */
export function samplingRoutes({
  store,
  samplingSessions,
  sampler,
  streams,
  finishedSamples,
  results,
  logger,
}: SamplingRouteParts): HandlersOf<
  | "createSamplingSession"
  | "joinSamplingSession"
  | "sample"
  | "cancelFuture"
  | "retrieveFutures"
  | "streamSample"
  | "getSampler"
> {
  return {
    async createSamplingSession({ caller, body }) {
      return { samplingSessionId: await samplingSessions.create(caller, body) };
    },

    async joinSamplingSession({ caller, body }) {
      return { clientCounter: await samplingSessions.join(caller, body.samplingSessionId) };
    },

    cancelFuture: ({ caller, body }) => sampler.cancel(caller, body.requestId),

    sample: (call) =>
      results.answer(call, async () => {
        const { caller, body, headers } = call;
        const requestId = await sampler.accept(caller, body, idempotencyKeyOf(headers));
        return { requestId, sampleSequenceIds: sampleSequenceIds(requestId, body.numSamples) };
      }),

    retrieveFutures: ({ caller, body, signal }) => finishedSamples.list(caller, body, signal),

    async streamSample({ caller, body, signal, streaming }) {
      const stream = await streams.open(caller, body);
      const sampling: SampleStream = (onToken, ended, whenReady) => {
        const work = stream(onToken, ended, whenReady);
        streaming(work);
        return work;
      };
      return streamResponse(sampling, logger, signal);
    },

    getSampler({ caller, params }) {
      const samplerId = params["samplerId"] ?? "";
      const found = store.samplers.get(samplerId);
      if (found?.owner !== caller.owner) throw notFound(`sampler ${samplerId}`);
      return { samplerId, baseModel: found.baseModel, modelPath: found.modelPath };
    },
  };
}

/** Bytes that wait for the reader before a stream takes no further turn. */
const maxUnreadBytes = 1 << 20;

/** One line of JSON per token, then the whole response; a failure on the way is a line with `error`. */
function streamResponse(stream: SampleStream, logger: Logger, signal: AbortSignal): Response {
  const encoder = new TextEncoder();
  const abort = new AbortController();
  const combined = AbortSignal.any([signal, abort.signal]);
  let wake = (): void => {};
  const run = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    const send = (line: unknown): void => {
      if (!combined.aborted) controller.enqueue(encoder.encode(`${stringifyJson(line)}\n`));
    };
    const whenReady: WhenReady = () => {
      if (combined.aborted || (controller.desiredSize ?? 0) > 0) return undefined;
      return new Promise<void>((resolve) => {
        wake = resolve;
      });
    };
    try {
      const onToken: OnToken = ({ sampleIndex: index, token, logprob, top }) =>
        send({ index, token, logprob, ...(top ? { top_logprobs: toPairs(top) } : {}) });
      send(encodeJson("SampleResponse", await stream(onToken, combined, whenReady)));
    } catch (error) {
      if (combined.aborted) return;
      const { error: message, category } = toFailure(error, logger);
      send({ error: message, category });
    }
    if (!combined.aborted) controller.close();
  };
  combined.addEventListener("abort", () => wake(), { once: true });
  const lines = new ReadableStream<Uint8Array>(
    {
      start: (controller) => void run(controller),
      pull: () => wake(),
      cancel: () => abort.abort(),
    },
    { highWaterMark: maxUnreadBytes, size: ({ length }) => length },
  );
  return new Response(lines, { headers: { "content-type": "application/x-ndjson" } });
}
