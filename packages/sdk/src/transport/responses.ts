import { APIConnectionError, APIStatusError, statusError } from "../errors/api-error.js";
import { parseJson } from "../wire/json-text.js";
import { decompress } from "./decompression.js";
import {
  describeRequest,
  isEmptyBadRequest,
  isSuccess,
  type Headers,
  type HttpRequest,
  type HttpResponse,
  type Send,
} from "./message.js";

const maxRedirects = 5;
const fullBudget = 16;

/** Headers that another server may receive. Everything else may be a secret. */
const harmlessHeaders = new Set([
  "accept",
  "accept-encoding",
  "content-type",
  "content-encoding",
  "user-agent",
  "range",
  "if-range",
]);

/**
 * Makes responses ready to be read.
 *
 * - An empty 400 comes from a proxy and counts as a broken connection, which every caller retries. A pool has a budget
 *   for this: each costs one, a success gives one back; without budget the 400 is a mistake of the caller.
 * - Compressed bodies are unpacked.
 * - Redirects are followed: every kind for GET, and those that keep method and body (307, 308) for the others. Another
 *   origin gets neither credentials nor the caller's own headers; if it then refuses the request, the error has the reason.
 */
export function withReadyResponses(send: Send): Send {
  const budgets = new Map<string, number>();
  return async (first) => {
    let request = first;
    for (let left = maxRedirects; ; left--) {
      let response = await send(request);
      // Nearly all responses are ready as they are.
      if (budgets.size === 0 && isSuccess(response) && !("content-encoding" in response.headers)) {
        return response;
      }
      checkEmpty(response, request, budgets);
      response = await decompress(response, request);
      const target = left > 0 && request.followsRedirects && targetOf(response, request);
      if (!target) return checkRefusal(response, request, first.origin);
      request = redirected(request, target);
    }
  };
}

function checkEmpty(
  response: HttpResponse,
  request: HttpRequest,
  budgets: Map<string, number>,
): void {
  const { pool } = request;
  // Storage is not behind the proxy.
  if (pool === "storage") return;
  const budget = budgets.get(pool) ?? fullBudget;
  if (!isEmptyBadRequest(response)) {
    if (response.status >= 300) return;
    if (budget + 1 < fullBudget) budgets.set(pool, budget + 1);
    else budgets.delete(pool);
    return;
  }
  if (budget === 0) return;
  budgets.set(pool, budget - 1);
  throw new APIConnectionError(
    "Connection error: a proxy answered 400 without a body; a new connection will be used.",
    { request: describeRequest(request), wasSent: false },
  );
}

function targetOf(response: HttpResponse, request: HttpRequest): URL | undefined {
  const { status, headers } = response;
  if (status < 300 || status >= 400) return undefined;
  const keepsMethod = status === 307 || status === 308;
  const isRedirect = keepsMethod || status === 301 || status === 302 || status === 303;
  const location = headers["location"];
  if (!isRedirect || !location || (request.method !== "GET" && !keepsMethod)) return undefined;
  const base = request.origin + request.path;
  if (!URL.canParse(location, base)) return undefined;
  const target = new URL(location, base);
  if (target.protocol === "http:" || target.protocol === "https:") return target;
  throw new APIStatusError(
    status,
    `${base} redirects to a ${target.protocol} address, which is not followed; only http and https are.`,
    { headers, request: describeRequest(request) },
  );
}

function redirected(request: HttpRequest, target: URL): HttpRequest {
  const next = { ...request, origin: target.origin, path: target.pathname + target.search };
  if (target.origin === request.origin) return next;
  return {
    ...next,
    commonHeaders: harmless(request.commonHeaders),
    headers: harmless(request.headers),
    idempotencyKey: null,
  };
}

function harmless(headers: Headers): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => harmlessHeaders.has(name)));
}

function checkRefusal(
  response: HttpResponse,
  request: HttpRequest,
  firstOrigin: string,
): HttpResponse {
  const { status, headers } = response;
  const isUnauthorized = status === 401 || status === 403;
  if (!isUnauthorized || request.origin === firstOrigin) return response;
  const error = statusError(status, { headers, request: describeRequest(request) });
  error.message = `Error code: ${status} - ${firstOrigin} redirected to ${request.origin}, and the key was not sent there; if that server is meant, set baseUrl to its address.`;
  throw error;
}

/** The error for a status other than 2xx, with the message of the body. */
export function toStatusError(response: HttpResponse, request: HttpRequest): APIStatusError {
  return statusError(response.status, {
    body: readBody(response.body),
    headers: response.headers,
    request: describeRequest(request),
  });
}

/** Decoded JSON, else text, else null. */
function readBody(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) return null;
  const text = new TextDecoder().decode(bytes);
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
