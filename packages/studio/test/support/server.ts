import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { ServiceClient, supervisedDatum, type TrainingClient } from "tinker-ts";

const cli = path.resolve(import.meta.dirname, "../../../cli/bin/tinker-ts.js");
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

/** A server in a process of its own, as users start it. */
export class StudioServer {
  readonly dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-studio-"));
  readonly #args: readonly string[];
  readonly #clients: ServiceClient[] = [];
  #child: ChildProcess | undefined;
  #port = 0;
  #stderr = "";
  #stdout = "";

  private constructor(args: readonly string[]) {
    this.#args = args;
  }

  /** Starts one; further arguments are those of `serve`. */
  static async start(...args: readonly string[]): Promise<StudioServer> {
    const server = new StudioServer(args);
    await server.start();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Its output on standard error. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Its output on standard output since it was started. */
  get stdout(): string {
    return this.#stdout;
  }

  /** Restarts it on the same port, with the same data. */
  async start(): Promise<void> {
    const args = ["serve", "--data", this.dataDir, "--port", String(this.#port), ...this.#args];
    const child = spawn(process.execPath, [cli, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, TINKER_API_KEY: "", TINKER_BASE_URL: "" },
    });
    this.#child = child;
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    this.#stdout = "";
    const port = await new Promise<number>((resolve) => {
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        this.#stdout += text;
        const found = /listening on http:\/\/[^\s]*:(\d+)\n/.exec(this.#stdout)?.[1];
        if (found !== undefined) resolve(Number(found));
      });
      child.once("exit", () => resolve(0));
    });
    this.#port ||= port;
    if (port === 0) throw new Error(`the server did not start: ${this.#stderr}`);
  }

  /** Ends the process at once. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  /** A client of this server. */
  client(apiKey = "tml-studio"): ServiceClient {
    const client = new ServiceClient({
      baseUrl: this.url,
      apiKey,
      telemetry: false,
      logger: quiet,
    });
    this.#clients.push(client);
    return client;
  }

  /** Trains a small adapter for some steps. */
  async train(steps: number, service = this.client()): Promise<TrainingClient> {
    const training = await service.createLoraTrainingClient({
      baseModel: "tinker-ts/sprout",
      rank: 4,
      seed: 1,
    });
    for (let step = 0; step < steps; step++) await trainStep(training);
    return training;
  }

  /** Ends everything and removes its data. */
  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close().catch(() => {})));
    await this.kill();
    rmSync(this.dataDir, { recursive: true, force: true });
  }
}

/** One step on a sentence. */
export async function trainStep(training: TrainingClient, learningRate = 1e-3): Promise<void> {
  const tokenizer = await training.getTokenizer();
  const datum = supervisedDatum(
    tokenizer.encode("The cat sat on"),
    tokenizer.encode(" the warm mat."),
  );
  await training.trainStep([datum], "cross_entropy", { adamParams: { learningRate } });
}
