import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { startServer } from "@tinker-ts/server";
import { ServiceClient, type TrainingClient } from "tinker-ts";
import { runCommand, type Finished, type CommandContext } from "./run-command.js";

const fixtures = path.resolve(import.meta.dirname, "../../../engine/test/fixtures");

/** The name of the base model that test servers have. */
export const baseModel = "qwen3";

/** The folder of that model: real weights, a vocabulary of 310 tokens, no chat template. */
export const modelFolder = path.join(fixtures, "qwen3/model");

/** A PEFT adapter of that model. */
export const adapterFolder = path.join(fixtures, "qwen3/adapter");

/** A server with the real engine, and a way to run commands against it. */
export class LiveServer {
  /** A folder of the test's own, where commands run. */
  readonly folder: string;
  readonly url: string;
  readonly service: ServiceClient;
  readonly #stop: () => Promise<void>;

  private constructor(folder: string, url: string, stop: () => Promise<void>) {
    this.folder = folder;
    this.url = url;
    this.service = new ServiceClient({ baseUrl: url, apiKey: "tml-test", telemetry: false });
    this.#stop = stop;
  }

  static async start(models: Record<string, string> = {}): Promise<LiveServer> {
    const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-cli-"));
    mkdirSync(path.join(folder, "work"));
    const server = await startServer({
      port: 0,
      dataDir: path.join(folder, "data"),
      models: { [baseModel]: modelFolder, ...models },
      logLevel: "silent",
    });
    return new LiveServer(path.join(folder, "work"), server.url, () => server.close());
  }

  /** Runs a command against this server. */
  run(args: readonly string[], context: CommandContext = {}): Promise<Finished> {
    const env = { TINKER_BASE_URL: this.url, ...context.env };
    return runCommand(args, { cwd: this.folder, ...context, env });
  }

  /** Runs a command that must succeed, and returns its JSON. */
  async json<T = Record<string, unknown>>(
    args: readonly string[],
    context?: CommandContext,
  ): Promise<T> {
    const { code, out, err } = await this.run(["--format", "json", ...args], context);
    if (code !== 0 || err !== "") throw new Error(`${args.join(" ")} ended with ${code}: ${err}`);
    return JSON.parse(out) as T;
  }

  /** A run with one step of training behind it. */
  async train(userMetadata: Record<string, string> = {}): Promise<TrainingClient> {
    const training = await this.service.createLoraTrainingClient({
      baseModel,
      rank: 4,
      seed: 1,
      userMetadata,
    });
    const data = [{ modelInput: [1, 2], lossFnInputs: { target_tokens: [2, 3], weights: [1, 1] } }];
    await training.trainStep(data, "cross_entropy", { adamParams: { learningRate: 1e-2 } });
    return training;
  }

  async stop(): Promise<void> {
    await this.service.close();
    await this.#stop();
    rmSync(path.dirname(this.folder), { recursive: true, force: true });
  }
}
