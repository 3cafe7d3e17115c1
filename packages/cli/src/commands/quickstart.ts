import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { defineCommand } from "../command.js";
import { probe } from "../connect/probe.js";

/** `quickstart` */
export const command = defineCommand({
  summary: "Train a small model and watch it learn, in less than a minute.",
  details: [
    "Needs no server and no key. With --base-url or --api-key the same program trains there.",
    "It is the program examples/quickstart.ts of the repository.",
  ],
  options: {
    model: {
      type: "string",
      short: "m",
      placeholder: "NAME",
      values: ["models"],
      description: "Model to train; by default the embedded one, or one of the server's",
    },
  },
  arguments: {},
  async run({ terminal: { env }, globals, signal }, { options }) {
    // The program stands alone, as a user's would; it gets its settings as a user's would, too.
    const program = fileURLToPath(new URL("../examples/quickstart.js", import.meta.url));
    const settings = {
      TINKER_BASE_URL: globals.baseUrl,
      TINKER_API_KEY: globals.apiKey,
      TINKER_MODEL: options.model,
    };
    const url = globals.baseUrl ?? env["TINKER_BASE_URL"];
    if (url && url !== "local:") await probe(url, signal);
    const given = Object.entries(settings).filter(([, value]) => value !== undefined);
    const child = spawn(process.execPath, [program], {
      stdio: "inherit",
      env: { ...env, ...Object.fromEntries(given) },
    });
    const stop = (): void => void child.kill();
    signal.addEventListener("abort", stop, { once: true });
    try {
      const [code] = (await once(child, "exit")) as [number | null];
      signal.throwIfAborted();
      return code ?? 1;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  },
});
