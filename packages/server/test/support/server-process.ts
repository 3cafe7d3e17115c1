import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import type { StartServerOptions } from "../../src/index.js";

/** How the process is started. */
export interface ProcessOptions {
  /** The system lets no file of the process grow beyond that. */
  readonly maxFileBytes?: number;
  /** The program of this folder that it runs. @default "serve.mjs" */
  readonly program?: string;
  /** Arguments of the program behind the server's options. @default none */
  readonly args?: readonly string[];
  /** @default this process's */
  readonly env?: NodeJS.ProcessEnv;
}

/** A server in a process of its own, which can be killed and started again on the same data and port. */
export class ServerProcess {
  readonly #options: StartServerOptions;
  readonly #process: ProcessOptions;
  #child: ChildProcess | undefined;
  #port = 0;

  constructor(options: StartServerOptions, started: ProcessOptions = {}) {
    this.#options = options;
    this.#process = started;
  }

  get port(): number {
    return this.#port;
  }

  /** Starts it; resolves when it listens. */
  async start(): Promise<void> {
    await this.launch();
  }

  /** Starts it, and returns a promise for when it listens: it can be ended before. */
  launch(): Promise<void> {
    const options = JSON.stringify({ ...this.#options, port: this.#port });
    const { maxFileBytes, program = "serve.mjs", args = [], env = process.env } = this.#process;
    const script = path.join(import.meta.dirname, program);
    const command = [process.execPath, script, options, ...args];
    if (maxFileBytes !== undefined) {
      const limit = `ulimit -f ${Math.floor(maxFileBytes / 1024)}; exec "$@"`;
      command.unshift("bash", "-c", limit, "limited");
    }
    const child = spawn(command[0]!, command.slice(1), {
      stdio: ["ignore", "pipe", "inherit"],
      env,
    });
    this.#child = child;
    const lines = createInterface(child.stdout);
    return Promise.race([once(lines, "line"), failsWhenEnded(child)]).then(([url]) => {
      this.#port = Number(new URL(String(url)).port);
    });
  }

  /** Sends a signal and waits for nothing. */
  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Whether it has ended. */
  get isOver(): boolean {
    const { exitCode = null, signalCode = null } = this.#child ?? {};
    return exitCode !== null || signalCode !== null;
  }

  /**
   * Ends it and starts it again in peace. Files of work that a kill interrupted stay while it is done again; the start
   * after that deletes them.
   */
  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** Ends it without a chance to tidy up. */
  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  /** Asks it to end and waits until it has. */
  stop(): Promise<void> {
    return this.#end("SIGTERM");
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }
}

async function failsWhenEnded(child: ChildProcess): Promise<never> {
  const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
  throw new Error(`the server ended with ${signal ?? code} before it listened`);
}
