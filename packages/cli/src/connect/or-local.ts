import type { CommandContext } from "../command.js";

/** The same context, with the engine on this machine where neither a server nor a key is set. */
export function orLocal(context: CommandContext): CommandContext {
  const { globals, terminal, output } = context;
  const { env } = terminal;
  const isSet =
    globals.baseUrl ??
    globals.apiKey ??
    (env["TINKER_BASE_URL"] || env["TINKER_API_KEY"] || env["TINKER_CREDENTIAL_CMD"]);
  if (isSet) return context;
  output.note("No server and no key are set: using the engine on this machine.");
  return { ...context, globals: { ...globals, baseUrl: "local:" } };
}
