import { hostname } from "node:os";
import { askSecret } from "../../auth/ask-secret.js";
import { readDefaultKey, storeKey } from "../../connect/credential-file.js";
import { describeKey, keyServer } from "../../auth/key-api.js";
import { defineCommand, type CommandContext } from "../../command.js";
import { hasBrowser, openBrowser } from "../../connect/open-browser.js";
import { hostedBaseUrl } from "../../connect/target.js";
import { CliError } from "../../errors/cli-error.js";

const keysPage = "https://tinker.thinkingmachines.ai/keys";

/** `auth login` */
export const command = defineCommand({
  summary: "Store an API key for the client and the command line.",
  details: [
    "Opens the page where keys are made, asks for the key without showing it, checks it with the server and stores it in ~/.tinker/credentials.json, which the Python program shares. From a pipe the key is the first line.",
    "TINKER_API_KEY and TINKER_CREDENTIAL_CMD go before the stored key.",
  ],
  options: {
    noOpen: { type: "flag", description: "Open no browser" },
  },
  arguments: {},
  examples: ["auth login", "auth login --base-url http://127.0.0.1:8080 < key.txt"],
  async run(context, { options }) {
    const { terminal, globals, output } = context;
    const stored = await readDefaultKey(terminal.env);
    if (stored) {
      throw new CliError(
        `Already logged in with the key ${JSON.stringify(stored.name)}.`,
        "Run 'tinker-ts auth logout' first.",
      );
    }
    const baseUrl = keyServer(context);
    const key = globals.apiKey ?? (await askForKey(context, baseUrl, !options.noOpen));
    if (key === "") throw new CliError("No key was given.", `Keys are made at ${keysPage}.`);
    const { id, name, note, details, email } = await describeKey(context, key);
    const about = note === null ? {} : { note };
    await storeKey(terminal.env, id, { type: "manual", key, name, ...about, details });
    if (output.isJson) output.json({ key_id: id, name, email });
    else
      output.line(`Logged in with the key ${JSON.stringify(name)}${email ? ` of ${email}` : ""}.`);
  },
});

function askForKey(context: CommandContext, baseUrl: string, mayOpen: boolean): Promise<string> {
  const { terminal } = context;
  if (terminal.isInteractive.input && baseUrl === hostedBaseUrl) {
    context.output.note(`Make a key, for example tinker-cli-${hostname()}, at ${keysPage}`);
    if (mayOpen && hasBrowser(terminal)) openBrowser(context, keysPage);
  }
  return askSecret(context, "API key: ");
}
