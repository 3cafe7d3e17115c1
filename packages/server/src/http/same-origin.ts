import { ApiError } from "../errors/api-error.js";

/** Who may call from a browser. */
export interface BrowserRules {
  /** Origins of web pages that may call, or "*"; pages served by this server itself always may. */
  readonly corsOrigins: readonly string[];
  /** Answer to loopback names and to these only; null answers to any name. */
  readonly hostNames: readonly string[] | null;
}

const loopbackNames = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|local\.invalid)$/i;

/**
 * Keeps web pages from using a server on their visitor's machine: pages of other origins are refused,
 * and so are foreign names that point at this machine. Programs send no `Origin`, so they
 * never notice.
 */
export function checkOrigin(request: Request, rules: BrowserRules): void {
  const { host, hostname } = addressOf(request.url);
  if (rules.hostNames && !loopbackNames.test(hostname) && !rules.hostNames.includes(hostname)) {
    const remedy =
      hostname === "0.0.0.0" || hostname === "[::]"
        ? "that is an address to listen on; use localhost in the address of the server"
        : "use localhost, set an API key, or give the option publicUrl the address in front of it";
    throw new ApiError(403, `this server answers to localhost only, not to ${hostname}: ${remedy}`);
  }
  const origin = request.headers.get("origin");
  if (origin === null || isAllowed(origin, rules) || hostOf(origin) === host) return;
  throw new ApiError(
    403,
    `pages of ${origin} may not call this server; see the option corsOrigins`,
  );
}

/** The headers that let a page of an allowed origin read the answer. */
export function corsHeaders(request: Request, rules: BrowserRules): Record<string, string> {
  const origin = request.headers.get("origin");
  if (origin === null || !isAllowed(origin, rules)) return {};
  return { "access-control-allow-origin": origin, vary: "origin" };
}

/** The answer to a browser that asks before it calls. */
export function preflightResponse(request: Request, rules: BrowserRules): Response {
  const headers = {
    ...corsHeaders(request, rules),
    "access-control-allow-methods": "GET, POST, PUT, DELETE",
    "access-control-allow-headers":
      request.headers.get("access-control-request-headers") ?? "content-type, x-api-key",
    "access-control-max-age": "600",
  };
  return new Response(null, { status: 204, headers });
}

let lastAddress = new URL("http://localhost");

/** The host that a URL names; nearly all requests come to the same one, and parsing takes long. */
function addressOf(url: string): URL {
  const origin = url.slice(0, url.indexOf("/", "https://".length));
  if (origin !== lastAddress.origin) lastAddress = new URL(url);
  return lastAddress;
}

function isAllowed(origin: string, rules: BrowserRules): boolean {
  return rules.corsOrigins.includes("*") || rules.corsOrigins.includes(origin);
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}
