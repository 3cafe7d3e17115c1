import type { Clock } from "../time/clock.js";
import type { Principal } from "./principal.js";
import { createHash, createHmac, timingSafeEqual } from "node:crypto";

const issuer = "passport-tinker-ts";
const tokenLifetimeSec = 3600;

/** Identifies callers by API key, or by a token that was exchanged for one. */
export class Authenticator {
  readonly #keys: ApiKeys;
  readonly #secret: Uint8Array;
  readonly #clock: Clock;

  constructor(keys: ApiKeys, secret: Uint8Array, clock: Clock) {
    this.#keys = keys;
    this.#secret = secret;
    this.#clock = clock;
  }

  /** The principal of this credential, or undefined if it is unknown or has expired. */
  identify(credential: string): Principal | undefined {
    if (this.#keys.isOpen || !credential.startsWith("eyJ")) return this.#keys.identify(credential);
    const claims = verifyToken(credential, this.#secret, this.#clock.now());
    return claims && this.#keys.byId(claims.kid);
  }

  /** A token for this caller, valid for an hour. */
  issueToken(caller: Principal, scope?: string): string {
    const issuedAtSec = Math.floor(this.#clock.now() / 1000);
    return signToken(
      {
        iss: issuer,
        sub: `urn:tinker-ts:user:${caller.owner}`,
        ...(caller.email === null ? {} : { email: caller.email }),
        kid: caller.keyId,
        ...(scope === undefined ? {} : { scope }),
        iat: issuedAtSec,
        exp: issuedAtSec + tokenLifetimeSec,
      },
      this.#secret,
    );
  }
}

/** The credential of a request: `X-API-Key`, or a bearer token. */
export function credentialOf(headers: Headers): string {
  const bearer = /^bearer\s+(\S+)$/i.exec(headers.get("authorization") ?? "");
  return headers.get("x-api-key") ?? bearer?.[1] ?? "";
}

/** The claims of a token. */
interface Claims {
  readonly iss: string;
  readonly sub: string;
  readonly email?: string;
  /** The key it was exchanged for; the token becomes invalid with that key. */
  readonly kid: string;
  /** The purpose of the token. */
  readonly scope?: string;
  /** Seconds since the epoch. */
  readonly iat: number;
  readonly exp: number;
}

const header = encode({ alg: "HS256", typ: "JWT" });

/** Signs claims into a token (HS256). */
function signToken(claims: Claims, secret: Uint8Array): string {
  const content = `${header}.${encode(claims)}`;
  return `${content}.${signature(content, secret)}`;
}

/** The claims of a token that this server has signed and that has not expired. */
function verifyToken(token: string, secret: Uint8Array, nowMs: number): Claims | undefined {
  const [head, payload, given, ...rest] = token.split(".");
  // Only this one header is ever issued, so that no other algorithm is accepted.
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

/** A key that may use the server. */
export interface ApiKeyOptions {
  /** The key itself; only its hash is kept in memory and nothing of it is written to disk. */
  readonly key: string;
  /**
   * The owner of the things that are visible with it; several keys may share one owner.
   * @default a name made from the key's hash, the same at every start
   */
  readonly owner?: string;
  readonly email?: string;
}

interface StoredKey {
  readonly hash: Buffer;
  readonly principal: Principal;
}

/** The owner of everything when no keys are configured. */
export const localOwner = "local";

const anyone: Principal = { owner: localOwner, email: null, keyId: "none" };

/**
 * The keys that may use the server.
 *
 * - Keys are compared by hash and in constant time, and always with all of them.
 * - Without configured keys every caller is the owner "local".
 */
export class ApiKeys {
  readonly #keys: readonly StoredKey[];

  constructor(keys: readonly (string | ApiKeyOptions)[]) {
    this.#keys = keys.map((entry) => {
      const { key, owner, email } = typeof entry === "string" ? { key: entry } : entry;
      checkKey(key);
      const hash = digest(key);
      const keyId = hash.toString("hex").slice(0, 16);
      return { hash, principal: { owner: owner ?? `user-${keyId}`, email: email ?? null, keyId } };
    });
  }

  /** Whether anyone may use the server. */
  get isOpen(): boolean {
    return this.#keys.length === 0;
  }

  /** The principal of this key, or undefined if the key is unknown. */
  identify(key: string): Principal | undefined {
    if (this.isOpen) return anyone;
    const hash = digest(key);
    let found: Principal | undefined;
    for (const stored of this.#keys) {
      if (timingSafeEqual(stored.hash, hash)) found = stored.principal;
    }
    return found;
  }

  /** The principal of a key id, while that key is configured. */
  byId(keyId: string): Principal | undefined {
    if (this.isOpen) return anyone;
    return this.#keys.find(({ principal }) => principal.keyId === keyId)?.principal;
  }
}

function digest(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

function checkKey(key: string): void {
  if (key.length < 8 || /\s/.test(key)) {
    throw new RangeError("apiKeys: a key needs at least 8 characters and no spaces");
  }
}
