import { ApiError } from "../errors/api-error.js";
import { createHash, randomBytes } from "node:crypto";
import type { Principal } from "../auth/principal.js";
import type { Clock } from "../time/clock.js";

/** What every answer of the studio carries, whatever it is. */
export const studioHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** Data is never kept by a browser. */
export const dataHeaders: Readonly<Record<string, string>> = {
  ...studioHeaders,
  "cache-control": "no-store",
};

/** The page of one chart may be shown within pages of these origins, and of no other. */
export function embedHeaders(origins: readonly string[]): Readonly<Record<string, string>> {
  const policy = studioHeaders["content-security-policy"]!;
  const ancestors = origins.length === 0 ? "'none'" : origins.join(" ");
  return {
    ...studioHeaders,
    "content-security-policy": policy.replace(
      "frame-ancestors 'none'",
      `frame-ancestors ${ancestors}`,
    ),
  };
}

const ownSites: ReadonlySet<string | null> = new Set(["same-origin", "none", null]);

/**
 * Refuses what pages of other origins ask for. A site ignores ports, so that `same-site` is another page on
 * this machine; requests for images and scripts carry no `Origin`, but they carry this. Only following a link
 * to the page itself is open to everyone, and a frame to the page of one chart, with a policy that says in which
 * pages it is shown.
 */
export function checkFetchSite(request: Request, isPage: boolean, isEmbed = false): void {
  const site = request.headers.get("sec-fetch-site");
  if (ownSites.has(site)) return;
  const isNavigation =
    request.headers.get("sec-fetch-mode") === "navigate" &&
    (request.headers.get("sec-fetch-dest") === "document" ||
      (isEmbed && request.headers.get("sec-fetch-dest") === "iframe"));
  if (isPage && isNavigation) return;
  throw new ApiError(403, `this is for the studio's own page, not for a ${site} one`);
}

/** What changes something needs a header that a foreign page cannot send without asking first. */
export function checkStudioHeader(request: Request): void {
  if (request.method === "GET" || request.headers.get("x-tinker-studio") === "1") return;
  throw new ApiError(403, "this changes something: send the header x-tinker-studio: 1");
}

const lifetimeMs = 60_000;
const maxCodes = 1000;

/** Codes that log a page in: good once and for a minute, and only their hashes are kept. */
export class LoginCodes {
  readonly #clock: Clock;
  readonly #codes = new Map<string, { readonly caller: Principal; readonly expiresAt: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  issue(caller: Principal): { code: string; expiresAt: number } {
    const now = this.#clock.now();
    for (const [hash, { expiresAt }] of this.#codes) {
      if (expiresAt <= now || this.#codes.size >= maxCodes) this.#codes.delete(hash);
    }
    const code = randomBytes(24).toString("base64url");
    const expiresAt = now + lifetimeMs;
    this.#codes.set(hashOf(code), { caller, expiresAt });
    return { code, expiresAt };
  }

  /** Whom a code logs in; it is used up. */
  redeem(code: string): Principal | undefined {
    const hash = hashOf(code);
    const found = this.#codes.get(hash);
    this.#codes.delete(hash);
    return found && found.expiresAt > this.#clock.now() ? found.caller : undefined;
  }
}

function hashOf(code: string): string {
  return createHash("sha256").update(code).digest("hex");
}
