import { TinkerError } from "../../errors/tinker-error.js";
import type { Connection } from "../../session/connection.js";
import { isJwt } from "../../transport/credentials.js";
import { readClaims } from "../../transport/jwt.js";
import type { WhoamiResponse } from "../../types/runs.js";

const trustedIssuer = "passport-";

/** Who the credential belongs to, as it says itself. */
export function identityOf({ token, plan }: Connection): WhoamiResponse {
  const claims = token === undefined ? ownClaims(plan.credential.key) : readClaims(token);
  const userUrn = claims?.["sub"];
  if (typeof userUrn !== "string") {
    throw new TinkerError(
      "A plain key does not tell whose it is: the server does not exchange keys for tokens, and the key is no token itself.",
      { code: "no_identity" },
    );
  }
  const email = claims?.["email"];
  return { userUrn, email: typeof email === "string" && email !== "" ? email : null };
}

function ownClaims(key: string | undefined): Readonly<Record<string, unknown>> | undefined {
  const claims = key !== undefined && isJwt(key) ? readClaims(key) : undefined;
  const issuer = claims?.["iss"];
  return typeof issuer === "string" && issuer.startsWith(trustedIssuer) ? claims : undefined;
}
