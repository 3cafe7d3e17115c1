import type { Logger } from "@tinker-ts/server";
import type { RestClient, ServiceClient, ServiceClientOptions } from "tinker-ts";
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
  /** Calls an endpoint that the clients do not cover, such as `/api/v1/stream_sample`. */
  readonly fetchPath: (path: string, init?: RequestInit) => Promise<Response>;
  /** Downloads from a signed address, which needs no credential. */
  readonly fetchUrl: (url: string, signal: AbortSignal) => Promise<Response>;
}

/** Opens the server that was chosen, does something with it, and closes it whatever happens. */
export async function withService<T>(
  context: CommandContext,
  action: (open: OpenService) => Promise<T>,
): Promise<T> {
  const target = chooseTarget(context);
  const { signal, globals } = context;
  const place =
    target.kind === "local" ? await openLocal(context) : await openRemote(target, signal);
  const { ServiceClient: Client } = await import("tinker-ts");
  const { timeout } = globals;
  try {
    const service = new Client({ ...clientOptions(context), ...place.options });
    try {
      return await action({
        service,
        rest: service.createRestClient(),
        bounds: { signal, ...(timeout === undefined ? {} : { timeoutMs: timeout }) },
        fetchPath: place.fetchPath,
        fetchUrl: place.fetchUrl,
      });
    } finally {
      await service.close();
    }
  } finally {
    await place.close();
  }
}

interface Place extends Pick<OpenService, "fetchPath" | "fetchUrl"> {
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
  const fetch = (request: Request): Promise<Response> => handler.fetch(request);
  return {
    options: { baseUrl: localOrigin, fetch },
    fetchPath: (path, init) => fetch(new Request(`${localOrigin}${path}`, init)),
    fetchUrl: (url, signal) => fetch(new Request(url, { signal })),
    close: () => handler.close(),
  };
}

/** What a person should know of the server in this process: that it fetches a model, and trouble. */
function notesOfServer(output: Output): Logger {
  const warn: Logger["warn"] = (event, fields = {}) => {
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
  const root = baseUrl.replace(/\/+$/, "");
  return {
    options: { baseUrl, apiKey },
    fetchPath: (path, init) => {
      const headers = new Headers(init?.headers);
      if (apiKey !== undefined) headers.set("x-api-key", apiKey);
      return fetch(`${root}${path}`, { ...init, headers });
    },
    fetchUrl: (url, until) => fetch(url, { signal: until }),
    close: async () => {},
  };
}

function clientOptions({ terminal, output }: CommandContext): ServiceClientOptions {
  const { env } = terminal;
  const warn = (message: string): void => output.note(`Warning: ${message}`);
  const silent = (): void => {};
  return {
    env,
    telemetry: false,
    // TINKER_LOG asks for the client's own log.
    ...(env["TINKER_LOG"] ? {} : { logger: { debug: silent, info: silent, warn, error: warn } }),
    onEvent: (event) => {
      if (event.type !== "retry") return;
      const seconds = (event.delayMs / 1000).toFixed(1);
      output.note(`${event.message} Trying again in ${seconds} s.`);
    },
  };
}
