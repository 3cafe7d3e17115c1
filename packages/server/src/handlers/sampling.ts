import { encodeJson, stringifyJson } from "tinker-ts/wire";
import type { Core } from "../core.js";
import { acceptAndAnswer } from "./futures.js";
import { notFound } from "../errors/api-error.js";
import { toFailure } from "../errors/failure.js";
import type { HandlersOf } from "../http/call.js";
import type { Logger } from "../log/logger.js";
import { idempotencyKeyOf } from "../service/request-ids.js";
import { toPairs } from "../service/sample-order.js";
import type { OnToken, SampleStream } from "../service/samples.js";

/** Sampling sessions, queued samples, and streams of tokens. */
export function samplingHandlers(
  core: Core,
): HandlersOf<"createSamplingSession" | "sample" | "streamSample" | "getSampler"> {
  const { samples, context } = core;
  return {
    async createSamplingSession({ caller, body }) {
      return { samplingSessionId: await samples.createSession(caller, body) };
    },

    sample: (call) =>
      acceptAndAnswer(core, call, async (holdMs) => {
        const way = { idempotencyKey: idempotencyKeyOf(call.headers), holdMs };
        return { requestId: await samples.submit(call.caller, call.body, way) };
      }),

    streamSample: ({ caller, body, signal, streaming }) => {
      const stream = samples.openStream(caller, body);
      const sampling: SampleStream = (...how) => {
        const work = stream(...how);
        streaming(work);
        return work;
      };
      return streamResponse(sampling, context.logger, signal);
    },

    getSampler({ caller, params }) {
      const samplerId = params["samplerId"] ?? "";
      const sampler = context.store.samplers.get(samplerId);
      if (sampler?.owner !== caller.owner) throw notFound(`sampler ${samplerId}`);
      return { samplerId, baseModel: sampler.baseModel, modelPath: sampler.modelPath };
    },
  };
}

/** One line of JSON per token, then the whole response; a failure on the way is a line with `error`. */
function streamResponse(stream: SampleStream, logger: Logger, signal: AbortSignal): Response {
  const encoder = new TextEncoder();
  const abort = new AbortController();
  const combined = AbortSignal.any([signal, abort.signal]);
  const lines = new ReadableStream<Uint8Array>({
    async start(controller) {
      const send = (line: unknown): void => {
        if (!combined.aborted) controller.enqueue(encoder.encode(`${stringifyJson(line)}\n`));
      };
      try {
        const onToken: OnToken = ({ sampleIndex: index, token, logprob, top }) =>
          send({ index, token, logprob, ...(top ? { top_logprobs: toPairs(top) } : {}) });
        send(encodeJson("SampleResponse", await stream(onToken, combined)));
      } catch (error) {
        if (combined.aborted) return;
        const { error: message, category } = toFailure(error, logger);
        send({ error: message, category });
      }
      if (!combined.aborted) controller.close();
    },
    cancel: () => abort.abort(),
  });
  return new Response(lines, { headers: { "content-type": "application/x-ndjson" } });
}
