import { CredentialError } from "../errors/credential-error.js";
import { problemOfHeaderValue } from "./sendable-header.js";
import type { Cancellation } from "../runtime/cancellation.js";
import { readVariable, type Environment } from "../runtime/environment.js";

/** Tells the credential for the next request; undefined when none is needed. Ends with the request. */
export type CredentialProvider = (
  signal?: Cancellation,
) => Promise<string | undefined> | string | undefined;

/** What a client knows about its credential before it asks anybody. */
export interface CredentialSource {
  /** `apiKey`, else `TINKER_API_KEY`. */
  readonly key: string | undefined;
  /** `TINKER_CREDENTIAL_CMD`: a shell command that prints a credential. */
  readonly command: string | undefined;
  /** Servers of one's own may need no credential; the hosted service does. */
  readonly isRequired: boolean;
}

const howToGetOne =
  'set TINKER_API_KEY (or pass apiKey) for the hosted service, set TINKER_BASE_URL (or pass baseUrl) for a server of your own, or use baseUrl "local:" to train in this process without any key';

/** Collects what there is; throws `CredentialError` when the service could never be used. */
export function findCredential(
  apiKey: string | undefined,
  env: Environment,
  isRequired: boolean,
): CredentialSource {
  const key = apiKey || readVariable(env, "TINKER_API_KEY");
  const command = readVariable(env, "TINKER_CREDENTIAL_CMD");
  const source = { key, command, isRequired };
  if (!command) checkKey(source);
  return source;
}

/**
 * Who authenticates a request. A ready-made token always wins; then the command where the server
 * asks for it or no usable key is there; else the key.
 */
export function resolveCredential(
  source: CredentialSource,
  options: { readonly enforceCommand: boolean },
): CredentialProvider {
  const { key, command } = source;
  if (key && isJwt(key)) return () => key;
  if (options.enforceCommand && !command) {
    throw new CredentialError(
      "The server wants a credential command, but TINKER_CREDENTIAL_CMD is not set; set it to a command that prints a credential.",
    );
  }
  if (command && (options.enforceCommand || !isUsable(key)))
    return (signal) => runCredentialCommand(command, signal);
  checkKey(source);
  return () => key;
}

/** Whether a credential is a token in itself and not a key to get one. */
export function isJwt(credential: string): boolean {
  return credential.startsWith("eyJ");
}

function isUsable(key: string | undefined): boolean {
  return key !== undefined && (key.startsWith("tml-") || isJwt(key));
}

function checkKey({ key, isRequired }: CredentialSource): void {
  if (key === undefined) {
    if (isRequired) throw new CredentialError(`No API key: ${howToGetOne}.`);
    return;
  }
  const problem = problemOfHeaderValue(key);
  if (problem) {
    throw new CredentialError(`The API key ${problem}; check TINKER_API_KEY or apiKey.`);
  }
  if (!isUsable(key)) {
    throw new CredentialError(
      'The API key must start with "tml-" (or be a token that starts with "eyJ"); check TINKER_API_KEY or apiKey.',
    );
  }
}

async function runCredentialCommand(command: string, signal?: Cancellation): Promise<string> {
  const { runCommand } = await import("./run-command.js");
  const credential = (await runCommand(command, signal)).trim();
  if (credential === "") {
    throw new CredentialError(
      "The credential command printed nothing; run TINKER_CREDENTIAL_CMD by hand to see why.",
    );
  }
  return credential;
}
