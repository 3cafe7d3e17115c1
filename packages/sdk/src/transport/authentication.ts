import { APIConnectionError } from "../errors/api-error.js";
import type { CredentialProvider } from "./credentials.js";
import { describeRequest, type HttpRequest, type Send } from "./message.js";

/**
 * Puts the credential of the moment on every request. A provider that fails counts as a lost
 * connection: whatever it depends on may be back at the next attempt.
 */
export function withCredential(send: Send, provider: CredentialProvider): Send {
  const sendWith = (request: HttpRequest, credential: string | undefined) =>
    send(
      credential === undefined
        ? request
        : { ...request, headers: { ...request.headers, "x-api-key": credential } },
    );
  return async (request) => {
    const provided = ask(provider, request);
    return sendWith(request, typeof provided === "object" ? await provided : provided);
  };
}

function ask(provider: CredentialProvider, request: HttpRequest) {
  const fail = (cause: unknown): never => {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new APIConnectionError(`Could not get a credential: ${message}`, {
      cause,
      request: describeRequest(request),
      wasSent: false,
    });
  };
  try {
    const provided = provider();
    return typeof provided === "object" ? provided.catch(fail) : provided;
  } catch (error) {
    return fail(error);
  }
}
