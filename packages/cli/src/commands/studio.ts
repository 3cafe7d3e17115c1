import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { RestClient } from "tinker-ts";
import { defineCommand, type CommandContext } from "../command.js";
import { openBrowser } from "../connect/open-browser.js";
import { withService, type OpenService } from "../connect/with-service.js";
import { CliError } from "../errors/cli-error.js";
import { folders, recordingOptions } from "../parse/recording-options.js";

/** `studio` */
export const command = defineCommand({
  summary: "Shows runs in a browser: curves, data, rollouts, checkpoints, a playground.",
  details: [
    "With --base-url it opens the studio of that server, and with --api-key logs in to it.",
    "A server that is not of this project has its runs and checkpoints shown here, and curves of --logs.",
    "Else it opens the server that holds the data directory; when nobody does, it serves it until Ctrl-C.",
    "A program with baseUrl local: shows itself when TINKER_TS_STUDIO=1 is set.",
  ],
  options: {
    data: {
      type: "string",
      placeholder: "DIR",
      description: "The data directory (TINKER_TS_DATA_DIR, else ~/.tinker-ts)",
    },
    port: {
      type: "integer",
      min: 0,
      max: 65_535,
      default: 0,
      description: "Where to serve when nobody does; 0 picks a free one",
    },
    ...recordingOptions,
    noOpen: { type: "flag", description: "Prints the address and opens no browser" },
  },
  arguments: {},
  examples: ["studio", "studio --base-url http://127.0.0.1:8080", "studio --logs ./runs"],
  async run(context, { options }) {
    const { terminal, output, globals } = context;
    const show = (address: string): void => {
      output.line(address);
      openBrowser(context, address, !options.noOpen);
    };
    const baseUrl = globals.baseUrl ?? (terminal.env["TINKER_BASE_URL"] || undefined);
    if (baseUrl === undefined || baseUrl === "local:") {
      await serve(context, options, show);
      return 0;
    }
    const url = baseUrl.replace(/\/+$/, "");
    await withService(context, async ({ service, rest, bounds }) => {
      const address = await service.getStudioUrl(bounds).catch(explainKey);
      if (address !== null) return show(address);
      const { apiKey } = globals;
      const { TINKER_API_KEY: key, TINKER_CREDENTIAL_CMD: program } = terminal.env;
      if (!(apiKey || key || program)) {
        throw new CliError(
          `${url} has no studio, and its runs need a key to be shown in one here.`,
          "Give it with --api-key or TINKER_API_KEY. Curves are in log folders: --logs DIR",
        );
      }
      output.note(
        `${url} has no studio; this one shows its runs and checkpoints, and curves of --logs.`,
      );
      await serve(context, options, show, { baseUrl: url, rest });
    });
    return 0;
  },
});

interface ServeOptions {
  readonly data: string | undefined;
  readonly port: number;
  readonly capture: "sample" | "all" | "off";
  readonly logs: readonly string[];
}

/** Serves the studio until Ctrl-C; where the data directory is held already, shows that server's. */
async function serve(
  context: CommandContext,
  options: ServeOptions,
  show: (address: string) => void,
  remote?: { readonly baseUrl: string; readonly rest: RestClient },
): Promise<void> {
  const { terminal, output, signal } = context;
  const { startServer } = await import("@tinker-ts/server");
  // Whoever only looks at another server does not need this machine's directory, which may be in use.
  const own = remote ? await mkdtemp(path.join(tmpdir(), "tinker-ts-viewer-")) : undefined;
  const dataDir = options.data ?? own ?? (terminal.env["TINKER_TS_DATA_DIR"] || undefined);
  try {
    const server = await startServer({
      port: options.port,
      capture: options.capture,
      logFolders: folders(options.logs, terminal.cwd),
      allowAnyModel: true,
      logLevel: "warn",
      ...(remote === undefined ? {} : { remote }),
      ...(dataDir === undefined ? {} : { dataDir: path.resolve(terminal.cwd, dataDir) }),
    });
    try {
      show(`${server.url}/studio`);
      output.note("Serving until Ctrl-C.");
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        else signal.addEventListener("abort", () => resolve(), { once: true });
      });
    } finally {
      await server.close();
    }
  } catch (error) {
    show(await studioOfHolder(context, error));
  } finally {
    if (own !== undefined) await rm(own, { recursive: true, force: true });
  }
}

/** The studio of the server that holds the data directory; throws every other error. */
async function studioOfHolder(context: CommandContext, error: unknown): Promise<string> {
  const url = holderOf(error);
  if (url === undefined) throw error;
  if (url === null) {
    throw new CliError(
      "The data directory is in use by a program that runs the engine itself.",
      "Start that program with TINKER_TS_STUDIO=1 to look into it, or wait until it ends.",
      { cause: error },
    );
  }
  const { globals, terminal } = context;
  const apiKey = globals.apiKey ?? (terminal.env["TINKER_API_KEY"] || undefined);
  const target = { kind: "remote", baseUrl: url, apiKey } as const;
  const find = async ({ service, bounds }: OpenService): Promise<string> =>
    (await service.getStudioUrl(bounds).catch(explainKey)) ?? `${url}/studio`;
  return withService(context, find, target);
}

/** A key that a server does not know is a matter of options. */
function explainKey(error: unknown): never {
  const isRefused = error instanceof Error && error.name === "AuthenticationError";
  if (!isRefused) throw error;
  throw new CliError("The key is not known there.", "Check --api-key or TINKER_API_KEY.", {
    cause: error,
  });
}

/** Where the holder of the data directory listens: null when it does not, undefined for any other error. */
function holderOf(error: unknown): string | null | undefined {
  const isHeld = error instanceof Error && error.name === "DataDirectoryInUseError";
  return isHeld ? ((error as Error & { url: string | null }).url ?? null) : undefined;
}
