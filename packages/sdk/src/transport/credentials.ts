import { CredentialError } from "../errors/tinker-error.js";
import { problemOfHeaderValue } from "./sendable-header.js";
import { readVariable, type Environment } from "../runtime/environment.js";
import { readStoredKey } from "./stored-key.js";

/** The credential of a client before any request. */
export interface CredentialSource {
  /** `apiKey`, else `TINKER_API_KEY`, else the stored key where there is no command. */
  readonly key: string | undefined;
  /** `TINKER_CREDENTIAL_CMD`: a shell command that prints a credential. */
  readonly command: string | undefined;
  /** Servers of one's own may need no credential; the hosted service does. */
  readonly isRequired: boolean;
}

const howToGetOne =
  'run tinker-ts auth login, or set TINKER_API_KEY (or pass apiKey), for the hosted service, set TINKER_BASE_URL (or pass baseUrl) for a server of your own, or use baseUrl "local:" to train in this process without any key';

/** Collects what there is; throws `CredentialError` when the service could never be used. */
export function findCredential(
  apiKey: string | undefined,
  env: Environment,
  isRequired: boolean,
): CredentialSource {
  const command = readVariable(env, "TINKER_CREDENTIAL_CMD");
  const given = apiKey || readVariable(env, "TINKER_API_KEY");
  const key = given || (command ? undefined : readStoredKey(env));
  const source = { key, command, isRequired };
  if (!command) checkKey(source);
  return source;
}

/** True for a credential that is a token and not a key to get one. */
export function isJwt(credential: string): boolean {
  return credential.startsWith("eyJ");
}

/** True for a key of a known form. */
export function isUsable(key: string | undefined): boolean {
  return key !== undefined && (key.startsWith("tml-") || isJwt(key));
}

/** Refuses a key that could never be sent, or none where one is needed. */
export function checkKey({ key, isRequired }: CredentialSource): void {
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
