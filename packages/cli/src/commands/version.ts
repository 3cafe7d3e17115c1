import { readFile } from "node:fs/promises";
import { defineCommand } from "../command.js";

/** `version` */
export const command = defineCommand({
  summary: "Print the version.",
  options: {},
  arguments: {},
  async run({ output }) {
    const manifest = JSON.parse(
      await readFile(new URL("../../package.json", import.meta.url), "utf8"),
    ) as { readonly version: string };
    if (output.isJson) output.json({ version: manifest.version });
    else output.line(`tinker-ts ${manifest.version}`);
  },
});
