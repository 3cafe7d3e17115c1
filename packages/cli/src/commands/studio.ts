import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { StudioCode, StudioHello } from "tinker-ts/wire";
import { defineCommand, type CommandContext } from "../command.js";
import { openBrowser } from "../connect/open-browser.js";
import { probe } from "../connect/probe.js";
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
    const { terminal, output, globals, signal } = context;
    const baseUrl = globals.baseUrl ?? (terminal.env["TINKER_BASE_URL"] || undefined);
    let remote: { baseUrl: string; apiKey: string } | undefined;
    const show = async (url: string): Promise<void> => {
      const address = await addressOf(context, url);
      output.line(address);
      openBrowser(context, address, !options.noOpen);
    };
    if (baseUrl !== undefined && baseUrl !== "local:") {
      await probe(baseUrl, signal);
      const url = baseUrl.replace(/\/+$/, "");
      if (await hello(url, signal)) return show(url);
      const apiKey = globals.apiKey ?? (terminal.env["TINKER_API_KEY"] || undefined);
      if (apiKey === undefined) {
        throw new CliError(
          `${url} has no studio, and its runs need a key to be shown in one here.`,
          "Give it with --api-key or TINKER_API_KEY. Curves are in log folders: --logs DIR",
        );
      }
      remote = { baseUrl: url, apiKey };
      output.note(
        `${url} has no studio; this one shows its runs and checkpoints, and curves of --logs.`,
      );
    }
    const { startServer } = await import("@tinker-ts/server");
    // Whoever only looks at another server does not need this machine's directory, which may be in use.
    const own = remote ? await mkdtemp(path.join(tmpdir(), "tinker-ts-viewer-")) : undefined;
    const dataDir = options.data ?? own ?? (terminal.env["TINKER_TS_DATA_DIR"] || undefined);
    let server: Awaited<ReturnType<typeof startServer>>;
    try {
      server = await startServer({
        port: options.port,
        capture: options.capture,
        logFolders: folders(options.logs, terminal.cwd),
        allowAnyModel: true,
        logLevel: "warn",
        ...(remote === undefined ? {} : { remote }),
        ...(dataDir === undefined ? {} : { dataDir: path.resolve(terminal.cwd, dataDir) }),
      });
    } catch (error) {
      const url = holderOf(error);
      if (url === undefined) throw error;
      if (url !== null) return show(url);
      throw new CliError(
        "The data directory is in use by a program that runs the engine itself.",
        "Start that program with TINKER_TS_STUDIO=1 to look into it, or wait until it ends.",
        { cause: error },
      );
    }
    try {
      await show(server.url);
      output.note("Serving until Ctrl-C.");
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        else signal.addEventListener("abort", () => resolve(), { once: true });
      });
    } finally {
      await server.close();
      if (own !== undefined) await rm(own, { recursive: true, force: true });
    }
    return 0;
  },
});

/** The address of the page, with a code that logs in where a login is needed and a key is at hand. */
async function addressOf(context: CommandContext, url: string): Promise<string> {
  const { globals, terminal, signal } = context;
  const greeting = await hello(url, signal);
  const key = globals.apiKey ?? (terminal.env["TINKER_API_KEY"] || undefined);
  if (!greeting?.needsLogin || key === undefined) return `${url}/studio`;
  const response = await fetch(`${url}/studio/api/code`, {
    method: "POST",
    headers: { "x-api-key": key, "x-tinker-studio": "1" },
    signal,
  });
  if (!response.ok) {
    throw new CliError("The key is not known there.", "Check --api-key or TINKER_API_KEY.");
  }
  const { code } = (await response.json()) as StudioCode;
  return `${url}/studio#code=${code}`;
}

/** What a server of this project says; undefined for any other. */
async function hello(url: string, signal: AbortSignal): Promise<StudioHello | undefined> {
  const response = await fetch(`${url}/studio/api/hello`, { signal }).catch(() => undefined);
  if (!response?.ok) return undefined;
  const answer = (await response.json().catch(() => undefined)) as StudioHello | undefined;
  return typeof answer?.version === "string" ? answer : undefined;
}

/** Where the holder of the data directory listens: null when it does not, undefined for any other error. */
function holderOf(error: unknown): string | null | undefined {
  const isHeld = error instanceof Error && error.name === "DataDirectoryInUseError";
  return isHeld ? ((error as Error & { url: string | null }).url ?? null) : undefined;
}
