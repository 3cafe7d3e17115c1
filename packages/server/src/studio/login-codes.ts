import { createHash, randomBytes } from "node:crypto";
import type { Principal } from "../auth/principal.js";
import type { Clock } from "../time/clock.js";

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
