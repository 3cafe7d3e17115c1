import { APIConnectionError } from "../errors/api-error.js";
import { CredentialError } from "../errors/credential-error.js";
import type { CredentialProvider } from "./resolve-credential.js";
import { describeRequest, type Headers, type HttpRequest, type Send } from "./message.js";
import { problemOfHeaderValue } from "./sendable-header.js";

/**
 * Puts the credential of the moment on every request. A provider that fails counts as a lost
 * connection: whatever it depends on may be back at the next attempt.
 */
export function withCredential(send: Send, provider: CredentialProvider): Send {
  const signedHeaders = new SignedHeaders();
  const sendWith = (request: HttpRequest, credential: string | undefined) =>
    send(
      credential === undefined
        ? request
        : { ...request, commonHeaders: signedHeaders.of(request.commonHeaders, credential) },
    );
  return (request) => {
    try {
      const provided = ask(provider, request);
      return typeof provided === "object"
        ? provided.then((credential) => sendWith(request, credential))
        : sendWith(request, provided);
    } catch (error) {
      return Promise.reject(error);
    }
  };
}

/** Common headers with the credential, which is the same for many requests, made once for each. */
class SignedHeaders {
  readonly #known = new WeakMap<Headers, Headers>();

  of(headers: Headers, credential: string): Headers {
    const known = this.#known.get(headers);
    if (known?.["x-api-key"] === credential) return known;
    const problem = problemOfHeaderValue(credential);
    // Trying again would not make it any better.
    if (problem) throw new CredentialError(`The credential ${problem}.`);
    const signed = { ...headers, "x-api-key": credential };
    this.#known.set(headers, signed);
    return signed;
  }
}

function ask(provider: CredentialProvider, request: HttpRequest) {
  const { signal } = request;
  const fail = (cause: unknown): never => {
    signal?.throwIfAborted();
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new APIConnectionError(`Could not get a credential: ${message}`, {
      cause,
      request: describeRequest(request),
      wasSent: false,
    });
  };
  try {
    const provided = provider(signal);
    return typeof provided === "object" ? provided.catch(fail) : provided;
  } catch (error) {
    return fail(error);
  }
}
