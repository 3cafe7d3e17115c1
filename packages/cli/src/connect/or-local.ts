import type { CommandContext } from "../command.js";

/** The same context, with the engine in this process where neither a server nor a key is set. */
export function orLocal(context: CommandContext): CommandContext {
  const { globals, terminal } = context;
  const { env } = terminal;
  const isSet =
    globals.baseUrl ??
    globals.apiKey ??
    (env["TINKER_BASE_URL"] || env["TINKER_API_KEY"] || env["TINKER_CREDENTIAL_CMD"]);
  return isSet ? context : { ...context, globals: { ...globals, baseUrl: "local:" } };
}
