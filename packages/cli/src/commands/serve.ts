import { existsSync } from "node:fs";
import path from "node:path";
import type { WeightName } from "@tinker-ts/server";
import { defineCommand, type CommandContext } from "../command.js";
import { CliError } from "../errors/cli-error.js";
import { folders, recordingOptions } from "../parse/recording-options.js";
import { Interrupted } from "../terminal/interrupted.js";

/** `serve` */
export const command = defineCommand({
  summary: "Serve the Tinker API on this machine with the embedded engine.",
  details: [
    "Prints one line, 'listening on http://HOST:PORT', when it is ready; the log goes to stderr.",
    "The studio shows runs in a browser, at http://HOST:PORT/studio.",
    "OpenAI's clients find it at http://HOST:PORT/v1.",
    "Everything is kept in the data directory: a server that is started again goes on where it was.",
    "Ctrl-C finishes what runs first; a second one ends it at once.",
  ],
  options: {
    host: {
      type: "string",
      default: "127.0.0.1",
      description: "Address to listen on; other than loopback needs --api-key",
    },
    port: {
      type: "integer",
      min: 0,
      max: 65_535,
      default: 8080,
      description: "Port; 0 picks a free one",
    },
    model: {
      type: "string",
      multiple: true,
      placeholder: "NAME=PATH",
      description: "Model by folder or hub id, NAME optional; by default the embedded one",
    },
    alias: {
      type: "string",
      multiple: true,
      placeholder: "NAME=MODEL",
      description: "Alias of a model or checkpoint (tinker://…)",
    },
    data: {
      type: "string",
      placeholder: "DIR",
      description: "Data directory (TINKER_TS_DATA_DIR, else ~/.tinker-ts)",
    },
    apiKey: {
      type: "string",
      multiple: true,
      placeholder: "KEY",
      description: "Key that clients must send; without it, all users of this machine have access",
    },
    threads: {
      type: "integer",
      min: 1,
      description: "Number of engine threads; by default all cores",
    },
    weights: {
      type: "string",
      multiple: true,
      placeholder: "[MODEL=]f32|int8",
      description: "Weights of base models, or of one of them (TINKER_TS_WEIGHTS, else f32)",
    },
    activations: {
      type: "string",
      choices: ["int8", "int16"],
      description:
        "Activations beside int8 weights: one digit is faster, 16 bits are finer (int16 by default)",
    },
    device: {
      type: "string",
      choices: ["cpu", "gpu", "auto"],
      description:
        "Device: the processor, a GPU through WebGPU, or what is faster (TINKER_TS_DEVICE, else cpu)",
    },
    durability: {
      type: "string",
      choices: ["process", "power"],
      default: "process",
      description: "Crashes to survive: of the process, or power loss",
    },
    sessionTimeout: {
      type: "integer",
      min: 1,
      default: 300,
      placeholder: "SECONDS",
      description: "Close sessions that are idle for this long",
    },
    limit: {
      type: "string",
      multiple: true,
      placeholder: "NAME=NUMBER",
      description: "Limit of the server, such as maxRunningSequences=64",
    },
    corsOrigin: {
      type: "string",
      multiple: true,
      description: "Origin of a web page that may call the server",
    },
    publicUrl: {
      type: "string",
      placeholder: "URL",
      description: "Address for clients, if not that of the server",
    },
    batchPolling: {
      type: "flag",
      description: "Batch the polling of official clients",
    },
    allowAnyModel: { type: "flag", description: "Serve any folder or hub id that clients name" },
    ...recordingOptions,
    logLevel: {
      type: "string",
      choices: ["debug", "info", "warn", "error", "silent"],
      default: "info",
      description: "Log level",
    },
  },
  arguments: {},
  examples: [
    "serve",
    "serve --port 0 --model qwen=Qwen/Qwen3-0.6B --data ./data",
    "serve --model small=./small --model qwen=Qwen/Qwen3-0.6B --weights qwen=int8",
    "serve --host 0.0.0.0 --api-key tml-SECRET",
  ],
  async run({ terminal, output, signal }, { options }) {
    const models = readModels(options.model, terminal);
    const aliases = readAliases(options.alias);
    const { startServer } = await import("@tinker-ts/server");
    const { threads, device, publicUrl, activations } = options;
    const weights = readWeights(options.weights);
    const dataDir = options.data ?? (terminal.env["TINKER_TS_DATA_DIR"] || undefined);
    const server = await startServer({
      host: options.host,
      port: options.port,
      durability: options.durability,
      apiKeys: options.apiKey,
      corsOrigins: options.corsOrigin,
      logLevel: options.logLevel,
      aliases,
      batchPolling: options.batchPolling,
      capture: options.capture,
      logFolders: folders(options.logs, terminal.cwd),
      limits: { sessionTimeoutMs: options.sessionTimeout * 1000, ...readLimits(options.limit) },
      ...(models ? { models } : {}),
      ...(dataDir === undefined ? {} : { dataDir: path.resolve(terminal.cwd, dataDir) }),
      ...(weights === undefined ? {} : { weights }),
      ...(activations === undefined ? {} : { activations }),
      ...(threads === undefined ? {} : { threads }),
      ...(device === undefined ? {} : { device }),
      ...(publicUrl === undefined ? {} : { publicUrl }),
      ...(options.allowAnyModel ? { allowAnyModel: true } : {}),
    }).catch(explain);
    output.line(`listening on ${server.url}`);
    output.note(`studio ${server.url}/studio`);
    output.note(`OpenAI's clients: baseURL ${server.url}/v1`);
    await aborted(signal);
    await server.close();
    // Service managers stop servers with SIGTERM; that is no failure.
    const { reason } = signal;
    return reason instanceof Interrupted && reason.signalName === "SIGTERM" ? 0 : 130;
  },
});

/** `NAME=NUMBER`; the server knows which names there are. */
function readLimits(given: readonly string[]): Record<string, number> {
  return Object.fromEntries(
    given.map((text) => {
      const [, name, value] = /^(\w+)=(\d+(?:\.\d+)?)$/.exec(text) ?? [];
      if (name === undefined) {
        throw new CliError(`--limit: ${JSON.stringify(text)} is not NAME=NUMBER.`);
      }
      return [name, Number(value)];
    }),
  );
}

/** `NAME=LOCATION`; a folder alone is called by its last part, a hub id by itself. */
function readModels(
  given: readonly string[],
  { cwd, env }: CommandContext["terminal"],
): Record<string, string> | undefined {
  if (given.length === 0) return undefined;
  const models: Record<string, string> = {};
  for (const text of given) {
    const [, named, location = ""] = /^(?:([^=]*)=)?(.*)$/s.exec(text) ?? [];
    const folder = folderOf(location, cwd, env["HOME"]);
    const name = named ?? (folder === undefined ? location : path.basename(folder));
    if (name === "" || location === "") {
      throw new CliError(`--model: ${JSON.stringify(text)} is not NAME=PATH_OR_HUB_ID.`);
    }
    if (Object.hasOwn(models, name)) throw new CliError(`--model: ${name} is given twice.`);
    // An id of the hub is looked up when it is used; a folder is there or it is not.
    if (folder !== undefined && !existsSync(folder)) {
      throw new CliError(`--model: the folder ${folder} does not exist.`);
    }
    models[name] = folder ?? location;
  }
  return models;
}

/** `NAME=MODEL`; the model is looked up when the name is used. */
function readAliases(given: readonly string[]): Record<string, string> {
  const aliases: Record<string, string> = {};
  for (const text of given) {
    const [, name = "", model = ""] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
    if (name === "") throw new CliError(`--alias: ${JSON.stringify(text)} is not NAME=MODEL.`);
    if (Object.hasOwn(aliases, name)) throw new CliError(`--alias: ${name} is given twice.`);
    aliases[name] = model;
  }
  return aliases;
}

/** One choice for all models, or `MODEL=CHOICE` as often as wanted. */
function readWeights(
  given: readonly string[],
): WeightName | Readonly<Record<string, WeightName>> | undefined {
  const byModel: Record<string, WeightName> = {};
  for (const text of given) {
    const [, model, choice = ""] = /^(?:(.+)=)?([^=]*)$/s.exec(text) ?? [];
    if (choice !== "f32" && choice !== "int8") {
      throw new CliError(`--weights: ${JSON.stringify(text)} is not [MODEL=]f32 or [MODEL=]int8.`);
    }
    if (model === undefined) {
      if (given.length === 1) return choice;
      throw new CliError("--weights: give one choice for all models, or each with its model.");
    }
    if (Object.hasOwn(byModel, model)) throw new CliError(`--weights: ${model} is given twice.`);
    byModel[model] = choice;
  }
  return given.length === 0 ? undefined : byModel;
}

/** The folder that a location means; undefined when it can be a hub id. */
function folderOf(location: string, cwd: string, home: string | undefined): string | undefined {
  // Shells leave the tilde alone behind an equals sign.
  const expanded = location.replace(/^~(?=[/\\])/, home ?? "~");
  return /^\.{0,2}[/\\]|^\.{1,2}$|^[A-Za-z]:[/\\]/.test(expanded)
    ? path.resolve(cwd, expanded)
    : undefined;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** How options of the server are called here. */
const flags: Readonly<Record<string, string>> = {
  host: "--host",
  apiKeys: "--api-key",
  publicUrl: "--public-url",
  weights: "--weights",
};

/** Refusals of the server are for the user to see, in the words of the command line. */
function explain(error: unknown): never {
  if (!(error instanceof Error)) throw error;
  const [, option = "", refusal = ""] = /^(\w+): (.*)$/s.exec(error.message) ?? [];
  const flag = flags[option];
  if (flag !== undefined) {
    throw new CliError(`${flag}: ${refusal.replace("apiKeys", "--api-key")}`, undefined, {
      cause: error,
    });
  }
  const isTaken = "code" in error && error.code === "EADDRINUSE";
  throw new CliError(
    `The server cannot start: ${error.message}`,
    isTaken ? "Another program listens there; choose another --port, or 0." : undefined,
    { cause: error },
  );
}
