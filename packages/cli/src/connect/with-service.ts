import type { Logger } from "@tinker-ts/server";
import type { ClientEvent, RestClient, ServiceClient, ServiceClientOptions } from "tinker-ts";
import type { CommandContext } from "../command.js";
import { CliError } from "../errors/cli-error.js";
import type { Output } from "../output/output.js";
import { probe } from "./probe.js";
import { chooseTarget, type Target } from "./target.js";

/** An open way to a server. */
export interface OpenService {
  readonly service: ServiceClient;
  readonly rest: RestClient;
  /** Bounds for every call: Ctrl-C and --timeout. */
  readonly bounds: { readonly signal: AbortSignal; readonly timeoutMs?: number };
  /** What the server was found to speak so far. */
  readonly dialect: () => "proto" | "json";
}

/** Opens a server, does something with it, and closes it whatever happens. */
export async function withService<T>(
  context: CommandContext,
  action: (open: OpenService) => Promise<T>,
  /** @default the one that was chosen */
  target: Target = chooseTarget(context),
): Promise<T> {
  const { signal, globals } = context;
  const place =
    target.kind === "local" ? await openLocal(context) : await openRemote(target, signal);
  const { ServiceClient: Client } = await import("tinker-ts");
  const { timeout } = globals;
  try {
    let dialect: "proto" | "json" = "proto";
    const options = clientOptions(context, (event) => {
      if (event.type === "dialect") dialect = event.dialect;
    });
    const service = new Client({ ...options, ...place.options });
    try {
      return await action({
        service,
        rest: service.createRestClient(),
        dialect: () => dialect,
        bounds: { signal, ...(timeout === undefined ? {} : { timeoutMs: timeout }) },
      });
    } finally {
      await service.close();
    }
  } finally {
    await place.close();
  }
}

interface Place {
  readonly options: ServiceClientOptions;
  close(): Promise<void>;
}

/** Stands for this process in the addresses of requests that never leave it. */
const localOrigin = "http://local.invalid";

async function openLocal({ terminal, output }: CommandContext): Promise<Place> {
  const { createLocalHandler } = await import("@tinker-ts/server").catch((cause: unknown) => {
    throw new CliError("The embedded engine cannot be loaded.", "Run 'tinker-ts doctor'.", {
      cause,
    });
  });
  const dataDir = terminal.env["TINKER_TS_DATA_DIR"];
  const logger = notesOfServer(output);
  const handler = await createLocalHandler({ logger, ...(dataDir ? { dataDir } : {}) });
  return {
    options: { baseUrl: localOrigin, fetch: (request) => handler.fetch(request) },
    close: () => handler.close(),
  };
}

/** What a person should know of the server in this process: that it fetches a model, and trouble. */
function notesOfServer(output: Output): Logger {
  const warn: Logger["warn"] = (event, fields = {}) => {
    if (event === "a base model cannot be read") return; // the command that needs it says so
    const facts = Object.entries(fields).map(([name, value]) => ` ${name}=${String(value)}`);
    output.note(`Warning: ${event}${facts.join("")}`);
  };
  return {
    debug: () => {},
    info: (event, fields) => {
      if (event !== "fetching model") return;
      output.note(`Fetching ${String(fields?.["model"])}: ${String(fields?.["progress"])}`);
    },
    warn,
    error: warn,
  };
}

async function openRemote(
  { baseUrl, apiKey }: Extract<Target, { kind: "remote" }>,
  signal: AbortSignal,
): Promise<Place> {
  await probe(baseUrl, signal);
  return { options: { baseUrl, apiKey }, close: async () => {} };
}

function clientOptions(
  { terminal, output }: CommandContext,
  listener: (event: ClientEvent) => void,
): ServiceClientOptions {
  const { env } = terminal;
  const warn = (message: string): void => output.note(`Warning: ${message}`);
  const silent = (): void => {};
  return {
    env,
    telemetry: false,
    // TINKER_LOG asks for the client's own log.
    ...(env["TINKER_LOG"] ? {} : { logger: { debug: silent, info: silent, warn, error: warn } }),
    onEvent: (event) => {
      listener(event);
      if (event.type !== "retry") return;
      const seconds = (event.delayMs / 1000).toFixed(1);
      output.note(`${event.message} Trying again in ${seconds} s.`);
    },
  };
}
