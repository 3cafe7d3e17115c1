import { defineCommand, type CommandContext } from "../command.js";
import { hasBrowser, openBrowser } from "../connect/open-browser.js";
import { withService, type OpenService } from "../connect/with-service.js";
import { CliError } from "../errors/cli-error.js";
import { folders, recordingOptions } from "../parse/recording-options.js";
import { connect, createServer, type Server } from "node:net";
import { hostname } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";

// What is not given stays as the server has it.
const { default: _default, ...capture } = recordingOptions.capture;

/** `studio` */
export const command = defineCommand({
  summary: "Show runs in a browser: curves, data, rollouts, checkpoints, a playground.",
  details: [
    "With --base-url it opens the studio of that server, and with --api-key logs in to it.",
    "Without --base-url it opens the server of the data directory, which programs with local: share, until Ctrl-C.",
  ],
  options: {
    data: {
      type: "string",
      placeholder: "DIR",
      description: "Data directory (TINKER_TS_DATA_DIR, else ~/.tinker-ts)",
    },
    port: {
      type: "integer",
      min: 0,
      max: 65_535,
      default: 0,
      description: "Port of the page; 0 is that of the server",
    },
    ...recordingOptions,
    capture,
    noOpen: { type: "flag", description: "Print the address and open no browser" },
  },
  arguments: {},
  examples: ["studio", "studio --base-url http://127.0.0.1:8080", "studio --logs ./runs"],
  async run(context, { options }) {
    const { terminal, output, globals } = context;
    const show = (address: string): void => {
      output.line(address);
      showAddress(context, address, !options.noOpen);
    };
    const baseUrl = globals.baseUrl ?? (terminal.env["TINKER_BASE_URL"] || undefined);
    if (baseUrl === undefined || baseUrl.startsWith("local:")) {
      await showLocal(context, options, show);
      return 0;
    }
    const url = baseUrl.replace(/\/+$/, "");
    await withService(context, async ({ service, bounds }) => {
      const address = await service.getStudioUrl(bounds).catch(explainKey);
      if (address !== null) return show(address);
      throw new CliError(
        `${url} has no studio.`,
        `List its runs with: tinker-ts run list --base-url ${url}. Show curves of log folders with: tinker-ts studio --logs DIR`,
      );
    });
    return 0;
  },
});

interface StudioOptions {
  readonly data: string | undefined;
  readonly port: number;
  readonly capture: "sample" | "all" | "off" | undefined;
  readonly logs: readonly string[];
}

/** How often the server is asked to stay, and found again where it was killed. */
const stayMs = 5_000;

/**
 * Shows the studio of the server that programs share, and keeps that server until Ctrl-C; where `tinker-ts serve` has
 * the data directory, shows its studio.
 */
async function showLocal(
  context: CommandContext,
  options: StudioOptions,
  show: (address: string) => void,
): Promise<void> {
  const { terminal, output, signal } = context;
  const { joinLocalServer, studioSettingsPath } = await import("@tinker-ts/server/local");
  const { env, cwd } = terminal;
  const dataDir = options.data === undefined ? undefined : path.resolve(cwd, options.data);
  const join = () => joinLocalServer({ dataDir, env, signal });
  const settings = {
    logFolders: folders(options.logs, cwd),
    ...(options.capture === undefined ? {} : { capture: options.capture }),
  };
  let joined = await join();
  const configure = async (): Promise<void> => {
    if (!joined.isShared) {
      if (settings.logFolders.length === 0 && settings.capture === undefined) return;
      throw new CliError(
        `The server at ${joined.url} was started with its own options.`,
        "Give --logs and --capture to tinker-ts serve.",
      );
    }
    await fetch(joined.url + studioSettingsPath, {
      method: "POST",
      headers: { "x-api-key": joined.key ?? "" },
      body: JSON.stringify(settings),
    });
  };
  await configure();
  const target = { kind: "local", baseUrl: `local:${joined.dataDir}` } as const;
  const find = ({ service, bounds }: OpenService) => service.getStudioUrl(bounds);
  const address = new URL((await withService(context, find, target)) ?? `${joined.url}/studio`);
  const forwarding = options.port === 0 ? undefined : await forward(options.port, () => joined.url);
  if (forwarding) address.port = String(options.port);
  show(address.href);
  if (!joined.isShared && !forwarding) return;
  output.note("Open until Ctrl-C; programs with baseUrl local: can run meanwhile.");
  try {
    while (!signal.aborted) {
      await delay(stayMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) break;
      const { url } = joined;
      joined = await join();
      if (joined.url !== url) await configure();
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    forwarding?.close();
  }
}

/** Listens on a port and passes bytes on to the server. */
async function forward(port: number, target: () => string): Promise<Server> {
  const server = createServer((socket) => {
    const address = new URL(target());
    const other = connect(Number(address.port), address.hostname);
    for (const [from, to] of [
      [socket, other],
      [other, socket],
    ] as const) {
      from.pipe(to);
      from.on("error", () => to.destroy());
      from.on("close", () => to.destroy());
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) =>
      reject(
        new CliError(
          `Cannot listen on port ${port}: ${cause.code ?? cause.message}.`,
          "Choose another --port, or leave it out.",
          { cause },
        ),
      ),
    );
    server.listen(port, "127.0.0.1", resolve);
  });
  server.unref();
  return server;
}

/** A key that a server does not know is a matter of options. */
function explainKey(error: unknown): never {
  const isRefused = error instanceof Error && error.name === "AuthenticationError";
  if (!isRefused) throw error;
  throw new CliError("The key is not known there.", "Check --api-key or TINKER_API_KEY.", {
    cause: error,
  });
}

/** Opens an address in a browser where there is a screen; elsewhere says how to get there from one. */
function showAddress(
  { terminal, output }: Pick<CommandContext, "terminal" | "output">,
  address: string,
  wanted: boolean,
): void {
  if (wanted && hasBrowser(terminal)) return openBrowser({ terminal, output }, address);
  const { port, hostname: host } = new URL(address);
  const isLoopback = /^(127\.|localhost$|\[::1\]$)/.test(host);
  if (isLoopback && !hasBrowser({ ...terminal, env: { ...terminal.env, BROWSER: "" } })) {
    output.note("From a machine with a screen:");
    output.note(`  ssh -L ${port}:127.0.0.1:${port} ${hostname()}, then open the address there`);
  }
}
