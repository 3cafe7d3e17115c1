import type { HttpRequest, HttpResponse, Send } from "./message.js";

const maxRedirects = 5;
const secretHeaders = new Set(["x-api-key", "cf-access-client-id", "cf-access-client-secret"]);

/**
 * Follows redirects: every kind for GET, and those that keep method and body (307, 308) for the
 * others; the rest are answers. Credentials never go to another origin.
 */
export function withRedirects(send: Send): Send {
  return async (request) => {
    let current = request;
    for (let count = 0; ; count++) {
      const response = await send(current);
      const target = request.followsRedirects ? targetOf(response, current) : undefined;
      if (!target || count === maxRedirects) return response;
      current = redirected(current, target);
    }
  };
}

function targetOf({ status, headers }: HttpResponse, request: HttpRequest): URL | undefined {
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
  const headers = Object.fromEntries(
    Object.entries(request.headers).filter(([name]) => !secretHeaders.has(name)),
  );
  return { ...next, headers };
}
