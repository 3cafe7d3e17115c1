import type { Headers, HttpRequest, HttpResponse, Send } from "./message.js";

const maxRedirects = 5;
const secretHeaders = new Set(["x-api-key", "cf-access-client-id", "cf-access-client-secret"]);

/**
 * Follows redirects: every kind for GET, and those that keep method and body (307, 308) for the
 * others; the rest are answers. Credentials never go to another origin.
 */
export function withRedirects(send: Send): Send {
  const follow = (request: HttpRequest, left: number): Promise<HttpResponse> =>
    send(request).then((response) => {
      const target = left > 0 && request.followsRedirects && targetOf(response, request);
      return target ? follow(redirected(request, target), left - 1) : response;
    });
  return (request) => follow(request, maxRedirects);
}

function targetOf({ status, headers }: HttpResponse, request: HttpRequest): URL | undefined {
  if (status < 300 || status >= 400) return undefined;
  const keepsMethod = status === 307 || status === 308;
  const isRedirect = keepsMethod || status === 301 || status === 302 || status === 303;
  const location = headers["location"];
  if (!isRedirect || !location || (request.method !== "GET" && !keepsMethod)) return undefined;
  const base = request.origin + request.path;
  return URL.canParse(location, base) ? new URL(location, base) : undefined;
}

function redirected(request: HttpRequest, target: URL): HttpRequest {
  const next = { ...request, origin: target.origin, path: target.pathname + target.search };
  if (target.origin === request.origin) return next;
  return {
    ...next,
    commonHeaders: withoutSecrets(request.commonHeaders),
    headers: withoutSecrets(request.headers),
  };
}

function withoutSecrets(headers: Headers): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !secretHeaders.has(name)));
}
