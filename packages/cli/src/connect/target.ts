import { mayHaveKey } from "./credential-file.js";
import type { CommandContext } from "../command.js";
import { CliError } from "../errors/cli-error.js";

/** Where commands are carried out. */
export type Target =
  | { readonly kind: "local"; readonly baseUrl: string }
  | { readonly kind: "remote"; readonly baseUrl: string; readonly apiKey: string | undefined };

/** The hosted service. */
export const hostedBaseUrl = "https://tinker.thinkingmachines.dev/services/tinker-prod";

/** The server that the options and the environment name; says how to get one when they name none. */
export function chooseTarget({ globals, terminal }: CommandContext): Target {
  const { env } = terminal;
  const baseUrl = globals.baseUrl ?? (env["TINKER_BASE_URL"] || undefined);
  if (baseUrl?.startsWith("local:")) return { kind: "local", baseUrl };
  const apiKey = globals.apiKey ?? (env["TINKER_API_KEY"] || undefined);
  const hasKey = apiKey !== undefined || env["TINKER_CREDENTIAL_CMD"] || mayHaveKey(env);
  if (baseUrl === undefined && !hasKey) {
    throw new CliError(
      "No server and no API key are set.",
      [
        "Choose one of these:",
        "  --base-url local:                      the engine on this machine; needs nothing else",
        "  tinker-ts serve, then --base-url URL   a server of your own (or TINKER_BASE_URL)",
        "  --api-key KEY                          the hosted service (or TINKER_API_KEY, or 'tinker-ts auth login')",
      ].join("\n"),
    );
  }
  return { kind: "remote", baseUrl: baseUrl ?? hostedBaseUrl, apiKey };
}
