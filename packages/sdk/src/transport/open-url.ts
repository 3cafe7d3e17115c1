import type { Runtime } from "../runtime/runtime.js";
import { packageVersion } from "../runtime/version.js";
import { sendWithRetries } from "./http-retries.js";
import type { Headers, HttpResponse, Send } from "./message.js";

/** What is asked of an address. */
export interface OpenUrlOptions {
  readonly headers: Headers;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly runtime: Runtime;
}

const commonHeaders: Headers = {
  accept: "*/*",
  // What is stored packed is wanted packed: positions and lengths are those of the stored bytes.
  "accept-encoding": "identity",
  "user-agent": `tinker-ts/${packageVersion}`,
};

/**
 * Opens an address that is not an endpoint of the API, such as a signed one, which needs no credential
 * and gets none; the body is read as it comes. Rejects for every status other than 2xx.
 */
export function openUrl(send: Send, url: URL, options: OpenUrlOptions): Promise<HttpResponse> {
  const { headers, timeoutMs, signal, runtime } = options;
  const request = {
    method: "GET",
    origin: url.origin,
    path: url.pathname + url.search,
    commonHeaders,
    headers,
    body: null,
    idempotencyKey: null,
    retryCount: 0,
    pool: "storage",
    timeoutMs,
    maxAnswerBytes: 2 ** 20,
    streams: true,
    isBackground: false,
    followsRedirects: true,
    signal,
  } as const;
  const retries = { maxRetries: 0, retriesConflicts: false, endpoint: url.host, runtime };
  return sendWithRetries(send, request, retries);
}
