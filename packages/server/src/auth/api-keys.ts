import { createHash, timingSafeEqual } from "node:crypto";
import type { Principal } from "./principal.js";

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
