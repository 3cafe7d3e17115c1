import { fromBase64 } from "../schema/base64.js";

/** The claims of a token, unverified; undefined when it cannot be read. */
export function readClaims(token: string): Readonly<Record<string, unknown>> | undefined {
  const [, payload] = token.split(".");
  if (!payload) return undefined;
  try {
    const claims: unknown = JSON.parse(new TextDecoder().decode(fromBase64(payload)));
    return typeof claims === "object" && claims !== null
      ? (claims as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** When a token expires, in milliseconds since the epoch; undefined when it does not say. */
export function expiryOf(token: string): number | undefined {
  const expiry = readClaims(token)?.["exp"];
  return typeof expiry === "number" ? expiry * 1000 : undefined;
}
