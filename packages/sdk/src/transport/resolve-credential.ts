import type { Cancellation } from "../runtime/cancellation.js";
import { runCommand } from "./run-command.js";
import { CredentialError } from "../errors/tinker-error.js";
import { checkKey, isJwt, isUsable, type CredentialSource } from "./credentials.js";

/** Returns the credential for the next request; undefined when none is needed. Ends with the request. */
export type CredentialProvider = (
  signal?: Cancellation,
) => Promise<string | undefined> | string | undefined;

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

async function runCredentialCommand(command: string, signal?: Cancellation): Promise<string> {
  const credential = (await runCommand(command, signal)).trim();
  if (credential === "") {
    throw new CredentialError(
      "The credential command printed nothing; run TINKER_CREDENTIAL_CMD by hand to see why.",
    );
  }
  return credential;
}
