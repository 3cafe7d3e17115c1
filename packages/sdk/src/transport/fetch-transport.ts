import { APIConnectionError, APITimeoutError } from "../errors/api-error.js";
import { onAbort } from "../runtime/cancellation.js";
import type { Clock } from "../runtime/clock.js";
import { describeRequest, type HttpRequest, type HttpResponse, type Transport } from "./message.js";

/** Answers a request in place of the network: `fetch`, a server in this process, a test. */
export type FetchHandler = (request: Request) => Promise<Response> | Response;

/** Sends through a handler instead of over sockets. */
export function openFetchTransport(handler: FetchHandler, clock: Clock): Transport {
  const underWay = new Set<AbortController>();
  const send = async (request: HttpRequest): Promise<HttpResponse> => {
    request.signal?.throwIfAborted();
    const controller = new AbortController();
    const stopListening = onAbort(request.signal, (reason) => controller.abort(reason));
    const cancelTimer = clock.schedule(request.timeoutMs, () =>
      controller.abort(new APITimeoutError(undefined, { request: describeRequest(request) })),
    );
    underWay.add(controller);
    try {
      return await Promise.race([
        read(handler, request, controller.signal, clock),
        rejectOnAbort(controller.signal),
      ]);
    } catch (error) {
      if (controller.signal.aborted) throw controller.signal.reason;
      const message = error instanceof Error ? error.message : String(error);
      throw new APIConnectionError(`Connection error: ${message}`, {
        cause: error,
        request: describeRequest(request),
      });
    } finally {
      underWay.delete(controller);
      cancelTimer();
      stopListening();
    }
  };
  return {
    send,
    close: () => {
      for (const controller of underWay) controller.abort(new Error("the client was closed"));
      return Promise.resolve();
    },
  };
}

async function read(
  handler: FetchHandler,
  request: HttpRequest,
  signal: AbortSignal,
  clock: Clock,
): Promise<HttpResponse> {
  const response = await handler(
    new Request(request.origin + request.path, {
      method: request.method,
      headers: {
        ...request.commonHeaders,
        ...request.headers,
        "x-stainless-retry-count": String(request.retryCount),
      },
      body: request.body,
      redirect: "manual",
      signal,
    }),
  );
  const answeredAt = clock.now();
  const body = new Uint8Array(await response.arrayBuffer());
  const headers = Object.fromEntries(response.headers);
  // A handler's answer has no frame around it that would tell a length; what arrived is complete.
  headers["content-length"] ??= String(body.byteLength);
  return { status: response.status, headers, body, downloadMs: clock.now() - answeredAt };
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    onAbort(signal, (reason) => reject(reason));
  });
}
