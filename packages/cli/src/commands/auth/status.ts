import { credentialFile, readDefaultKey } from "../../connect/credential-file.js";
import { defineCommand, type CommandContext } from "../../command.js";
import { chooseTarget } from "../../connect/target.js";
import { withService } from "../../connect/with-service.js";
import { describeError } from "../../output/describe-error.js";

/** `auth status` */
export const command = defineCommand({
  summary: "Show where the API key comes from, and whether the server takes it.",
  details: [
    "The key itself is never shown. Ends with 1 without a key, or when the server refuses it.",
  ],
  options: {},
  arguments: {},
  examples: ["auth status"],
  async run(context) {
    const { output } = context;
    const source = await sourceOf(context);
    const problem = source === null ? "no key is set" : await problemOf(context);
    output.result({
      json: () => ({ source, is_accessible: problem === undefined, problem: problem ?? null }),
      table: () => ({
        title: "Credentials",
        headers: ["Question", "Answer"],
        rows: [
          ["Key", source ?? "none; run 'tinker-ts auth login' or set TINKER_API_KEY"],
          ["Server", problem === undefined ? "takes it" : problem],
        ],
      }),
    });
    return problem === undefined ? 0 : 1;
  },
});

/** Where the key comes from, in the order in which the client looks. */
async function sourceOf({ globals, terminal }: CommandContext): Promise<string | null> {
  const { env } = terminal;
  if (globals.apiKey !== undefined) return "--api-key";
  if (env["TINKER_API_KEY"]) return "TINKER_API_KEY";
  if (env["TINKER_CREDENTIAL_CMD"]) return "TINKER_CREDENTIAL_CMD";
  const stored = await readDefaultKey(env);
  return stored ? `${JSON.stringify(stored.name)} in ${credentialFile(env)}` : null;
}

/** Why the server cannot be used; undefined when it can. */
async function problemOf(context: CommandContext): Promise<string | undefined> {
  try {
    await withService(
      context,
      ({ service, bounds }) => service.getServerCapabilities(bounds),
      chooseTarget(context),
    );
    return undefined;
  } catch (error) {
    context.signal.throwIfAborted();
    const { heading, detail } = describeError(error);
    return detail === undefined ? heading : `${heading}: ${detail.split("\n")[0]}`;
  }
}
