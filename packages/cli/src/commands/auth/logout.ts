import { readDefaultKey, removeKey } from "../../connect/credential-file.js";
import { deleteKey } from "../../auth/key-api.js";
import { defineCommand } from "../../command.js";
import { CliError } from "../../errors/cli-error.js";

/** `auth logout` */
export const command = defineCommand({
  summary: "Remove the stored API key.",
  details: [
    "A key that you pasted stays valid: other machines may use it. One that was made for this machine alone, by an older Python program, is deleted on the server too.",
  ],
  options: {},
  arguments: {},
  examples: ["auth logout"],
  async run(context) {
    const { terminal, output } = context;
    const stored = await readDefaultKey(terminal.env);
    if (!stored) throw new CliError("No key is stored.", "Run 'tinker-ts auth login'.");
    const { id, name, type } = stored;
    const problem = type === "generated" ? await deleteKey(context, stored.key) : undefined;
    await removeKey(terminal.env, id);
    if (problem !== undefined) {
      throw new CliError(
        `The key ${JSON.stringify(name)} was removed here, but not at the server: ${problem}`,
        "Delete it at https://tinker.thinkingmachines.ai/keys.",
      );
    }
    const rest = type === "generated" ? "It was deleted at the server too." : "It stays valid.";
    if (output.isJson) output.json({ key_id: id, name, is_valid: type !== "generated" });
    else output.line(`Removed the key ${JSON.stringify(name)}. ${rest}`);
  },
});
