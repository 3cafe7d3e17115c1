import { APIConnectionError } from "../errors/api-error.js";
import type { CredentialProvider } from "./credentials.js";
import { describeRequest, type Send } from "./message.js";

/**
 * Puts the credential of the moment on every request. A provider that fails counts as a lost
 * connection: whatever it depends on may be back at the next attempt.
 */
export function withCredential(send: Send, provider: CredentialProvider): Send {
  return async (request) => {
    let credential: string | undefined;
    try {
      const provided = provider();
      credential = typeof provided === "object" ? await provided : provided;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new APIConnectionError(`Could not get a credential: ${message}`, {
        cause: error,
        request: describeRequest(request),
        wasSent: false,
      });
    }
    if (credential === undefined) return send(request);
    return send({ ...request, headers: { ...request.headers, "x-api-key": credential } });
  };
}
