import { createHmac, timingSafeEqual } from "node:crypto";
import type { Clock } from "../time/clock.js";

/** A link that anyone may follow until it expires. */
export interface SignedLink {
  readonly url: string;
  readonly expiresAt: number;
}

/** The target of a valid link. */
export interface LinkTarget {
  readonly kind: string;
  readonly subject: string;
}

/** The path below which signed links live. */
export const signedPath = "/api/v1/signed";

/** Makes and checks links that carry their own permission, so that plain downloaders can follow them. */
export class SignedLinks {
  readonly #secret: Uint8Array;
  readonly #clock: Clock;

  constructor(secret: Uint8Array, clock: Clock) {
    this.#secret = secret;
    this.#clock = clock;
  }

  sign(origin: string, target: LinkTarget, lifetimeMs: number): SignedLink {
    const expiresAt = Math.floor((this.#clock.now() + lifetimeMs) / 1000) * 1000;
    const query = new URLSearchParams({
      subject: target.subject,
      expires: String(expiresAt / 1000),
      signature: this.#signature(target, expiresAt),
    });
    return { url: `${origin}${signedPath}/${target.kind}?${query.toString()}`, expiresAt };
  }

  /** The target of a link, or undefined if it was not signed here or has expired. */
  verify(kind: string, query: URLSearchParams): LinkTarget | undefined {
    const subject = query.get("subject") ?? "";
    const expiresAt = Number(query.get("expires")) * 1000;
    const target = { kind, subject };
    const expected = Buffer.from(this.#signature(target, expiresAt));
    const given = Buffer.from(query.get("signature") ?? "");
    const isValid = given.length === expected.length && timingSafeEqual(given, expected);
    return isValid && expiresAt > this.#clock.now() ? target : undefined;
  }

  #signature(target: LinkTarget, expiresAt: number): string {
    return createHmac("sha256", this.#secret)
      .update(JSON.stringify([target.kind, target.subject, expiresAt]))
      .digest("base64url");
  }
}
