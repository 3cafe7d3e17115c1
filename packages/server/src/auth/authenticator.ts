import type { Clock } from "../time/clock.js";
import type { ApiKeys } from "./api-keys.js";
import { signToken, verifyToken } from "./json-web-token.js";
import type { Principal } from "./principal.js";

const issuer = "passport-tinker-ts";
const tokenLifetimeSec = 3600;

/** Tells who is asking: by API key, or by a token that was exchanged for one. */
export class Authenticator {
  readonly #keys: ApiKeys;
  readonly #secret: Uint8Array;
  readonly #clock: Clock;

  constructor(keys: ApiKeys, secret: Uint8Array, clock: Clock) {
    this.#keys = keys;
    this.#secret = secret;
    this.#clock = clock;
  }

  /** Who holds this credential, or undefined when it is unknown or has expired. */
  identify(credential: string): Principal | undefined {
    if (this.#keys.isOpen || !credential.startsWith("eyJ")) return this.#keys.identify(credential);
    const claims = verifyToken(credential, this.#secret, this.#clock.now());
    return claims && this.#keys.byId(claims.kid);
  }

  /** A token that stands for this caller for an hour. */
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
