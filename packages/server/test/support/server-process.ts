import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import type { StartServerOptions } from "../../src/index.js";

const program = path.join(import.meta.dirname, "serve.mjs");

/** A server in a process of its own, which can be killed and started again on the same data and port. */
export class ServerProcess {
  readonly #options: StartServerOptions;
  #child: ChildProcess | undefined;
  #port = 0;

  constructor(options: StartServerOptions) {
    this.#options = options;
  }

  get port(): number {
    return this.#port;
  }

  /** Starts it; resolves when it listens. */
  async start(): Promise<void> {
    const options = JSON.stringify({ ...this.#options, port: this.#port });
    const child = spawn(process.execPath, [program, options], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#child = child;
    const lines = createInterface(child.stdout);
    const [url] = (await Promise.race([once(lines, "line"), failsWhenEnded(child)])) as [string];
    this.#port = Number(new URL(url).port);
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
