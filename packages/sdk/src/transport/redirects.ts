import { APIStatusError, statusError } from "../errors/api-error.js";
import {
  describeRequest,
  type Headers,
  type HttpRequest,
  type HttpResponse,
  type Inspect,
  type Send,
} from "./message.js";

const maxRedirects = 5;

/** What another server may see: how to answer, and what the body is. Everything else may be a secret. */
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
 * Follows redirects: every kind for GET, and those that keep method and body (307, 308) for the
 * others; the rest are answers. To another origin go neither credentials nor the caller's own headers;
 * when that server then wants a credential, the error says why it got none.
 */
export function withRedirects(send: Send, inspect: Inspect = (response) => response): Send {
  const goOn = (
    response: HttpResponse,
    request: HttpRequest,
    left: number,
    firstOrigin: string,
  ): HttpResponse | Promise<HttpResponse> => {
    const target = left > 0 && request.followsRedirects && targetOf(response, request);
    if (target) return follow(redirected(request, target), left - 1, firstOrigin);
    const isUnauthorized = response.status === 401 || response.status === 403;
    if (!isUnauthorized || request.origin === firstOrigin) return response;
    throw keptBack(response, request, firstOrigin);
  };
  const follow = (request: HttpRequest, left: number, firstOrigin: string): Promise<HttpResponse> =>
    send(request).then((received) => {
      const response = inspect(received, request);
      return "status" in response
        ? goOn(response, request, left, firstOrigin)
        : response.then((inspected) => goOn(inspected, request, left, firstOrigin));
    });
  return (request) => follow(request, maxRedirects, request.origin);
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

function keptBack(
  { status, headers }: HttpResponse,
  request: HttpRequest,
  firstOrigin: string,
): APIStatusError {
  const error = statusError(status, { headers, request: describeRequest(request) });
  error.message = `Error code: ${status} - ${firstOrigin} redirected to ${request.origin}, and the key was not sent there; if that server is meant, set baseUrl to its address.`;
  return error;
}
