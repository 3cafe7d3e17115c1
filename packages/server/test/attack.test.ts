import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { RequestFailedError, ServiceClient, type TrainingClient } from "tinker-ts";
import { afterEach, describe, expect, it } from "vitest";
import { FileMoments, fileMoments } from "./support/file-moments.js";
import { flipBit } from "./support/flip-bit.js";
import { randomBatch } from "./support/random-batch.js";
import { realModels } from "./support/real-models.js";
import { savedStates } from "./support/saved-states.js";
import { seededRandom } from "./support/seeded-random.js";
import { ServerProcess } from "./support/server-process.js";

/*
 * A server process under attack: killed at the moments at which it writes, while it starts and while it
 * stops, and stopped for longer than sessions live without a sign of life. Three clients notice nothing.
 */

const isFull = process.env["TINKER_TS_TEST_FULL"] !== undefined;
const minKills = 120;
const killsBetweenStops = 40;
const clientCount = 3;
const sessionTimeoutMs = 6000;

const cleanUps: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
  // Thousands of folders are deleted.
}, 120_000);

/** Pauses before retries, ten times shorter; deadlines are as they are. */
const hurriedClock = {
  now: () => performance.now(),
  wallTime: () => Date.now(),
  schedule(durationMs: number, callback: () => void, options: { keepsAlive?: boolean } = {}) {
    const timer = setTimeout(callback, options.keepsAlive ? durationMs / 10 : durationMs);
    return () => clearTimeout(timer);
  },
};

async function openServer(
  sessionMs = sessionTimeoutMs,
): Promise<{ server: ServerProcess; dataDir: string }> {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-attack-"));
  const server = new ServerProcess({
    dataDir,
    models: realModels,
    logLevel: "silent",
    // Small, so that states are written all the time and sessions end soon when they are not heard.
    limits: { maxJournalBytes: 20_000, sessionTimeoutMs: sessionMs, longPollMs: 1000 },
  });
  await server.start();
  cleanUps.push(async () => {
    server.signal("SIGCONT");
    await server.kill();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return { server, dataDir };
}

/** What one client does, step by step, and what it is told. */
class Client {
  readonly told: unknown[] = [];
  readonly #random: () => number;
  readonly #index: number;
  training!: TrainingClient;
  saved: string | undefined;
  steps = 0;

  constructor(index: number) {
    this.#index = index;
    this.#random = seededRandom(100 + index);
  }

  async open(baseUrl: string): Promise<void> {
    const service = new ServiceClient({
      baseUrl,
      apiKey: "tml-attack-test",
      telemetry: false,
      clock: hurriedClock,
      logger: { debug() {}, info() {}, warn() {}, error() {} },
    });
    cleanUps.push(() => service.close());
    const seed = 1 + this.#index;
    this.training = await service.createLoraTrainingClient({ baseModel: "qwen3", rank: 4, seed });
  }

  async step(): Promise<void> {
    const step = this.steps++;
    const { training } = this;
    const pass = training.forwardBackward(randomBatch(this.#random), "cross_entropy");
    const adam = training.optimStep({ learningRate: 0.01, weightDecay: 0.01 });
    this.told.push((await pass).metrics, (await adam).metrics);
    if (step % 8 === 3) this.saved = (await training.saveState(`step-${step}`)).path;
    if (step % 8 === 5) await this.#sample(step);
    if (step % 8 === 6) await this.#failStep();
    if (step % 16 === 9 && this.saved) await training.loadStateWithOptimizer(this.saved);
  }

  async #sample(seed: number): Promise<void> {
    const sampler = await this.training.saveWeightsAndGetSamplingClient();
    const samplingParams = { maxTokens: 6, seed };
    const { sequences } = await sampler.sample({ prompt: [1, 2, 3], samplingParams });
    this.told.push([...sequences[0]!.tokens]);
  }

  /** A gradient that is no number, and the step that has to refuse it. */
  async #failStep(): Promise<void> {
    const tokens = [4, 5, 6];
    const lossFnInputs = {
      target_tokens: tokens,
      logprobs: tokens.map(() => -1000),
      advantages: tokens.map(() => 1),
    };
    const pass = this.training.forwardBackward([{ modelInput: tokens, lossFnInputs }], "ppo");
    const refused = this.training.optimStep({ learningRate: 0.01 });
    this.told.push((await pass).metrics);
    const error: unknown = await refused.then(undefined, (reason: unknown) => reason);
    this.told.push(error instanceof RequestFailedError ? error.category : error);
  }
}

async function openClients(server: ServerProcess): Promise<Client[]> {
  const clients = Array.from({ length: clientCount }, (_, index) => new Client(index));
  for (const client of clients) await client.open(`http://127.0.0.1:${server.port}`);
  return clients;
}

/** Attacks a server until it was killed often enough; returns how often each thing happened. */
async function attack(server: ServerProcess, dataDir: string): Promise<Map<string, number>> {
  const random = seededRandom(Number(process.env["TINKER_TS_TEST_SEED"] ?? 42));
  const moments = new FileMoments(dataDir);
  const counts = new Map<string, number>();
  const count = (what: string): void => {
    counts.set(what, (counts.get(what) ?? 0) + 1);
  };
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const someMoment = (patienceMs: number): Promise<void> =>
    moments.next(pick(fileMoments), 1 + Math.floor(random() * 4), patienceMs);
  const kill = async (what: string): Promise<void> => {
    count("killed");
    count(what);
    await server.kill();
  };
  try {
    while ((counts.get("killed") ?? 0) < minKills) {
      await someMoment(3000);
      if ((counts.get("killed") ?? 0) >= killsBetweenStops * (1 + (counts.get("stopped") ?? 0))) {
        server.signal("SIGSTOP");
        await new Promise((resolve) => setTimeout(resolve, 1.5 * sessionTimeoutMs));
        server.signal("SIGCONT");
        count("stopped");
        continue;
      }
      if (random() < 0.2) {
        server.signal("SIGTERM");
        await someMoment(200);
        if (server.isOver) count("asked to end");
        else await kill("killed while it ended");
      } else await kill("killed at work");
      while (random() < 0.3) {
        const listening = server.launch().catch(() => {});
        await Promise.race([someMoment(1500), listening]);
        await kill("killed while it started");
        await listening;
      }
      await server.start();
    }
    return counts;
  } finally {
    moments.close();
  }
}

describe.runIf(isFull)("a server under attack", () => {
  it("goes on with the same bits, and no session ends", async () => {
    const stormy = await openServer();
    const clients = await openClients(stormy.server);
    const over = new AbortController();
    const work = clients.map(async (client) => {
      while (!over.signal.aborted) await client.step();
      await client.training.saveState("final");
    });
    const counts = await attack(stormy.server, stormy.dataDir).finally(() => over.abort());
    await Promise.all(work);
    console.info(
      Object.fromEntries(counts),
      clients.map(({ steps }) => steps),
    );
    expect(counts.get("killed")).toBeGreaterThanOrEqual(minKills);
    for (const what of ["at work", "while it started", "while it ended"]) {
      expect(counts.get(`killed ${what}`)).toBeGreaterThan(0);
    }
    expect(counts.get("stopped")).toBeGreaterThan(1);
    await stormy.server.restart();
    expect(readdirSync(stormy.dataDir)).not.toContain("lost-and-found");

    const calm = await openServer();
    const others = await openClients(calm.server);
    await Promise.all(
      others.map(async (client, index) => {
        while (client.steps < clients[index]!.steps) await client.step();
        await client.training.saveState("final");
      }),
    );
    expect(clients.map(({ told }) => told)).toEqual(others.map(({ told }) => told));
    expect(savedStates(stormy.dataDir)).toEqual(savedStates(calm.dataDir));
  }, 3_600_000);

  it("distinguishes damaged from whole files, and deletes nothing unexplained", async () => {
    // Clients work one after the other here, and those whose turn it is not are silent.
    const { server, dataDir } = await openServer(300_000);
    const clients = await openClients(server);
    const [first, ...others] = clients;
    for (const client of clients) while (client.steps < 10) await client.step();
    const states = savedStates(dataDir).length;
    await server.kill();
    const root = path.join(dataDir, "checkpoints");
    const damaged = readdirSync(root).find((folder) =>
      isOf(path.join(root, folder), first!.saved!),
    );
    flipBit(path.join(root, damaged!, "adapter_model.safetensors"));
    await server.start();
    await expect(first!.training.loadState(first!.saved!)).rejects.toThrow(
      `checkpoints/${damaged}/adapter_model.safetensors`,
    );
    for (const client of others) await client.step();
    await server.kill();
    rmSync(path.join(dataDir, "server.db-wal"), { force: true });
    await server.start();
    const lost = path.join(dataDir, "lost-and-found/checkpoints");
    const found =
      savedStates(dataDir).length + savedStates(path.join(dataDir, "lost-and-found")).length;
    expect(readdirSync(lost).length).toBeGreaterThan(0);
    expect(found).toBeGreaterThanOrEqual(states);
  }, 300_000);
});

function isOf(folder: string, tinkerPath: string): boolean {
  const manifest = readFileSync(path.join(folder, "manifest.json"), "utf8");
  return (JSON.parse(manifest) as { of: string }).of === tinkerPath;
}
