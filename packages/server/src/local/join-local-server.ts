import { spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  truncateSync,
} from "node:fs";
import { get } from "node:http";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { TinkerError } from "tinker-ts/wire";
import { DataDirectoryInUseError } from "../store/data-lock.js";
import { readHolder, type Holder } from "../store/holder-note.js";

/** Where `tinker-ts studio` has folders of run logs shown, and chooses what is captured. */
export const studioSettingsPath = "/local/studio";

/** The server of a data directory. */
export interface JoinedServer {
  readonly url: string;
  /** The API key for programs of this user; null where none is needed. */
  readonly key: string | null;
  /** False for a server that was started by itself, such as `tinker-ts serve`. */
  readonly isShared: boolean;
  readonly dataDir: string;
}

/** What a program needs of the server it joins. */
export interface JoinOptions {
  /** @default TINKER_TS_DATA_DIR, else ~/.tinker-ts */
  readonly dataDir?: string | undefined;
  /** @default the environment of this process */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal | undefined;
}

/** How long a local server waits for its next client before it ends. */
export const unusedMs = 30_000;

/** With which a local server ends when another one has the data directory. */
export const inUseExitCode = 75;

/** Longest time until a server answers. */
const startMs = 120_000;
const pollMs = 25;
const probeMs = 5_000;
/** A log larger than this starts anew with the next server. */
const maxLogBytes = 4 * 2 ** 20;

const { version } = createRequire(import.meta.url)("../../package.json") as { version: string };

/**
 * Finds the server of a data directory, or starts one that outlives this process.
 *
 * - The note in the directory names the server; whether it runs is known when it answers.
 * - Programs that start servers at the same moment start several: one gets the lock of the directory, the others end, and
 *   all programs join that one.
 * - A server of another version, or with another device or precision than the environment names, is refused.
 */
export async function joinLocalServer(options: JoinOptions = {}): Promise<JoinedServer> {
  const { env = process.env, signal } = options;
  const dataDir = dataDirectory(options.dataDir, env);
  const deadline = performance.now() + startMs;
  let started: StartedServer | undefined;
  for (;;) {
    signal?.throwIfAborted();
    const holder = readHolder(dataDir);
    if (holder?.url && (await answers(holder.url, signal))) {
      checkHolder(holder, dataDir, env);
      return { url: holder.url, key: holder.key, isShared: holder.kind === "local", dataDir };
    }
    const isStarting = holder !== undefined && holder.url === null && isAlive(holder.pid);
    if (isStarting && holder.kind === "program") throw new DataDirectoryInUseError(dataDir, holder);
    started?.check();
    if (performance.now() > deadline) throw silent(dataDir, holder);
    if (!isStarting && (started === undefined || started.isOver)) {
      started = new StartedServer(dataDir, env);
    }
    await delay(pollMs, undefined, { ref: true, signal: signal ?? undefined }).catch(() => {});
  }
}

/**
 * The name of a model for a server that works in another folder: a folder of this program by its whole path, all else
 * as it is.
 */
export function nameForServer(model: string): string {
  if (model.includes("://")) return model;
  const isPath = /^\.{1,2}([/\\]|$)/.test(model) || existsSync(model);
  return isPath ? path.resolve(model) : model;
}

/** Where a local server writes its log. */
export function localLogFile(dataDir: string): string {
  return path.join(dataDir, "local-server.log");
}

/** The data directory of an option, the environment, or the home folder. */
export function dataDirectory(
  given: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string {
  return path.resolve(given || env["TINKER_TS_DATA_DIR"] || path.join(homedir(), ".tinker-ts"));
}

/** A server process that this one has started. */
class StartedServer {
  readonly #logFile: string;
  #exit: { readonly code: number | null; readonly signal: string | null } | undefined;
  #failure: Error | undefined;

  constructor(dataDir: string, env: Readonly<Record<string, string | undefined>>) {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    this.#logFile = localLogFile(dataDir);
    const log = openLog(this.#logFile);
    const program = fileURLToPath(new URL("../local-main.js", import.meta.url));
    const child = spawn(process.execPath, [program, dataDir], {
      detached: true,
      stdio: ["ignore", log, log],
      env: environmentOf(env),
      windowsHide: true,
    });
    closeSync(log);
    child.once("error", (error) => (this.#failure = error));
    child.once("exit", (code, signal) => (this.#exit = { code, signal }));
    child.unref();
  }

  get isOver(): boolean {
    return this.#exit !== undefined;
  }

  /** Throws when the server could not start; that another one was faster is no failure. */
  check(): void {
    if (this.#failure) throw this.#failure;
    if (this.#exit === undefined || this.#exit.code === inUseExitCode) return;
    // One that was killed is started again, as one that ended because it was not used.
    if (this.#exit.signal !== null || this.#exit.code === 0) return;
    const lines = readFileSync(this.#logFile, "utf8").trimEnd().split("\n").slice(-12);
    throw new Error(
      `the local server ended with exit code ${this.#exit.code}:\n${lines.join("\n")}\n(${this.#logFile})`,
    );
  }
}

function openLog(file: string): number {
  try {
    if (statSync(file).size > maxLogBytes) truncateSync(file);
  } catch {
    // There is none yet.
  }
  return openSync(file, "a", 0o600);
}

/** The environment of a server; one debugger listens to one process. */
function environmentOf(env: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  const options = env["NODE_OPTIONS"]
    ?.split(/\s+/)
    .filter((option) => !option.startsWith("--inspect"))
    .join(" ");
  return { ...env, ...(options === undefined ? {} : { NODE_OPTIONS: options }) };
}

/** Asks on a connection of its own that ends with the answer: one that stays open would keep the server running. */
function answers(url: string, signal: AbortSignal | undefined): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = get(
      `${url}/api/v1/healthz`,
      { agent: false, timeout: probeMs, ...(signal ? { signal } : {}) },
      (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      },
    );
    asked.once("timeout", () => asked.destroy());
    asked.once("error", () => resolve(false));
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user exists, too.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function checkHolder(
  holder: Holder,
  dataDir: string,
  env: Readonly<Record<string, string | undefined>>,
): void {
  const where = `the server of ${dataDir} (process ${holder.pid})`;
  const remedy = "end its programs and start again, or choose another data directory (dataDir)";
  if (holder.version !== version) {
    throw unusable(
      `${where} is version ${holder.version} of @tinker-ts/server, this program has ${version}; ${remedy}`,
    );
  }
  for (const name of ["device", "weights"] as const) {
    const wanted = env[`TINKER_TS_${name.toUpperCase()}`];
    const has = holder[name];
    if (
      !wanted ||
      has === null ||
      has === wanted ||
      (name === "weights" && has.startsWith(wanted))
    ) {
      continue;
    }
    if (wanted === "auto") continue;
    throw unusable(
      `TINKER_TS_${name.toUpperCase()} is ${wanted}, but ${where} runs with ${name} ${has}; ${remedy}`,
    );
  }
}

function unusable(message: string): TinkerError {
  return new TinkerError(message, { code: "data_directory_unusable" });
}

function silent(dataDir: string, holder: Holder | undefined): Error {
  const who = holder === undefined ? "no server" : `process ${holder.pid}`;
  return unusable(
    `the local server of ${dataDir} did not answer within ${startMs / 1000} s (${who}); see ${localLogFile(dataDir)}`,
  );
}
