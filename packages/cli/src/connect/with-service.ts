import type { Logger } from "@tinker-ts/server";
import type { ClientEvent, RestClient, ServiceClient, ServiceClientOptions } from "tinker-ts";
import type { CommandContext } from "../command.js";
import { CliError } from "../errors/cli-error.js";
import type { Output } from "../output/output.js";
import { followLocalLog } from "./local-log.js";
import { probe } from "./probe.js";
import { chooseTarget, type Target } from "./target.js";

/** A connection to a server. */
export interface OpenService {
  readonly service: ServiceClient;
  readonly rest: RestClient;
  /** Options of every call: Ctrl-C and --timeout. */
  readonly bounds: { readonly signal: AbortSignal; readonly timeoutMs?: number };
  /** The dialect of the server, as far as it is known. */
  readonly dialect: () => "proto" | "json";
}

/** Connects to a server, runs an action, and closes the connection. */
export async function withService<T>(
  context: CommandContext,
  action: (open: OpenService) => Promise<T>,
  /** @default the server that the options name */
  target: Target = chooseTarget(context),
): Promise<T> {
  const { signal, globals } = context;
  const place =
    target.kind === "local"
      ? await openLocal(context, target.baseUrl)
      : await openRemote(target, signal);
  const { ServiceClient: Client } = await import("tinker-ts");
  const { timeout } = globals;
  try {
    let dialect: "proto" | "json" = "proto";
    const options = clientOptions(context, (event) => {
      if (event.type === "dialect") dialect = event.dialect;
    });
    // Its session ends with how the command ended.
    return await new Client({ ...options, ...place.options }).run((service) =>
      action({
        service,
        rest: service.createRestClient(),
        dialect: () => dialect,
        bounds: { signal, ...(timeout === undefined ? {} : { timeoutMs: timeout }) },
      }),
    );
  } finally {
    await place.close();
  }
}

interface Place {
  readonly options: ServiceClientOptions;
  close(): Promise<void>;
}

/** The address of this process in requests that never leave it. */
const localOrigin = "http://local.invalid";

/** The engine on this machine: the shared server of the data directory, or this process where that is asked for. */
async function openLocal(context: CommandContext, baseUrl: string): Promise<Place> {
  const { terminal, output } = context;
  const { env } = terminal;
  const isTemporary = (baseUrl.slice("local:".length) || env["TINKER_TS_DATA_DIR"]) === "memory";
  if (isTemporary) return { options: { baseUrl }, close: async () => {} };
  if (/^(1|true|yes|on)$/i.test(env["TINKER_TS_IN_PROCESS"] ?? "")) return openInside(context);
  const { localLogFile, dataDirectory } = await import("@tinker-ts/server/local").catch(refuse);
  const dataDir = dataDirectory(baseUrl.slice("local:".length), env);
  const stop = followLocalLog(localLogFile(dataDir), output);
  return { options: { baseUrl: "local:", dataDir }, close: async () => stop() };
}

function refuse(cause: unknown): never {
  throw new CliError("The embedded engine cannot be loaded.", "Run 'tinker-ts doctor'.", { cause });
}

async function openInside({ terminal, output }: CommandContext): Promise<Place> {
  const { createLocalHandler } = await import("@tinker-ts/server").catch(refuse);
  const dataDir = terminal.env["TINKER_TS_DATA_DIR"];
  const logger = notesOfServer(output);
  const handler = await createLocalHandler({
    logger,
    inProcess: true,
    ...(dataDir ? { dataDir } : {}),
  });
  return {
    options: { baseUrl: localOrigin, fetch: (request) => handler.fetch(request) },
    close: () => handler.close(),
  };
}

/** Notes of the server in this process for the user: downloads of models, and problems. */
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
    // With TINKER_LOG the client writes its own log.
    ...(env["TINKER_LOG"] ? {} : { logger: { debug: silent, info: silent, warn, error: warn } }),
    onEvent: (event) => {
      listener(event);
      if (event.type !== "retry") return;
      const seconds = (event.delayMs / 1000).toFixed(1);
      output.note(`${event.message} Trying again in ${seconds} s.`);
    },
  };
}
