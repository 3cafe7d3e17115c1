import { createHmac, timingSafeEqual } from "node:crypto";

/** What a token says. */
export interface Claims {
  readonly iss: string;
  readonly sub: string;
  readonly email?: string;
  /** The key it was exchanged for; when that key goes, so does the token. */
  readonly kid: string;
  /** What it was made for. */
  readonly scope?: string;
  /** Seconds since the epoch. */
  readonly iat: number;
  readonly exp: number;
}

const header = encode({ alg: "HS256", typ: "JWT" });

/** Signs claims into a token (HS256). */
export function signToken(claims: Claims, secret: Uint8Array): string {
  const content = `${header}.${encode(claims)}`;
  return `${content}.${signature(content, secret)}`;
}

/** The claims of a token that this server has signed and that has not expired. */
export function verifyToken(token: string, secret: Uint8Array, nowMs: number): Claims | undefined {
  const [head, payload, given, ...rest] = token.split(".");
  // Only this one header is ever issued, so no other algorithm can be talked into.
  if (head !== header || !payload || !given || rest.length > 0) return undefined;
  const expected = Buffer.from(signature(`${head}.${payload}`, secret));
  const actual = Buffer.from(given);
  if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) return undefined;
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as Claims;
  return claims.exp * 1000 > nowMs ? claims : undefined;
}

function signature(content: string, secret: Uint8Array): string {
  return createHmac("sha256", secret).update(content).digest("base64url");
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
