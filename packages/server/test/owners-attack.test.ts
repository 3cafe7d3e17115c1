import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { ServiceClient } from "tinker-ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { realModels } from "./support/real-models.js";
import { ServerProcess } from "./support/server-process.js";
import { worstBodies } from "./support/worst-bodies.js";

/*
 * One owner does what it can against another one, on a server in a process of its own.
 */

const isFull = process.env["TINKER_TS_TEST_FULL"] !== undefined;
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const attacker = "tml-key-attacker";
const victim = "tml-key-victim";
const data = [
  { modelInput: [5, 8, 13], lossFnInputs: { target_tokens: [8, 13, 21], weights: [1, 1, 1] } },
];

describe.runIf(isFull)("an owner that attacks another", { timeout: 600_000 }, () => {
  let dataDir: string;
  let server: ServerProcess;
  let baseUrl: string;
  const clients: ServiceClient[] = [];

  beforeAll(async () => {
    dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-owners-"));
    server = new ServerProcess({
      dataDir,
      models: realModels,
      logLevel: "error",
      apiKeys: [
        { key: attacker, owner: "attacker" },
        { key: victim, owner: "victim" },
      ],
      limits: { maxLiveModels: 32 },
    });
    await server.start();
    baseUrl = `http://127.0.0.1:${server.port}`;
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await server.kill();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const clientOf = (apiKey: string): ServiceClient => {
    const client = new ServiceClient({ baseUrl, apiKey, telemetry: false, logger: quiet });
    clients.push(client);
    return client;
  };
  const post = (apiKey: string, page: string, body: BodyOf, headers = {}): Promise<Response> =>
    fetch(`${baseUrl}/api/v1/${page}`, {
      method: "POST",
      body,
      headers: { "x-api-key": apiKey, "content-type": "application/json", ...headers },
    });
  const openSession = async (apiKey: string): Promise<string> => {
    const body = '{"tags":[],"user_metadata":{},"sdk_version":"0.25.0"}';
    const answer = await post(apiKey, "create_session", body);
    return ((await answer.json()) as { session_id: string }).session_id;
  };

  it("with announced bodies that never come costs it no heartbeat and no request", async () => {
    const session = await openSession(victim);
    const sockets = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const socket = net.connect(server.port, "127.0.0.1");
        socket.on("error", () => {});
        await new Promise<void>((resolve) => {
          socket.once("connect", resolve);
        });
        const head = `POST /api/v1/forward_backward HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${attacker}\r\n`;
        socket.write(`${head}content-type: application/json\r\ncontent-length: 134217728\r\n\r\n{`);
        return socket;
      }),
    );
    for (let beat = 0; beat < 50; beat++) {
      const body = JSON.stringify({ session_id: session });
      expect((await post(victim, "session_heartbeat", body)).status).toBe(200);
      await openSession(victim);
    }
    for (const socket of sockets) socket.destroy();
  });

  it("with bodies that stand still loses them after a while", async () => {
    const socket = net.connect(server.port, "127.0.0.1");
    const answered = new Promise<string>((resolve) => {
      socket.once("data", (bytes) => resolve(bytes.toString()));
    });
    const head = `POST /api/v1/forward_backward HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${attacker}\r\n`;
    socket.write(`${head}content-type: application/json\r\ncontent-length: 1000000\r\n\r\n{`);
    expect(await answered).toMatch(/^HTTP\/1.1 408 /);
    socket.destroy();
  });

  it("with the worst bodies leaves its requests answered and the server alive", async () => {
    const hostile = await clientOf(attacker).createLoraTrainingClient({
      baseModel: "qwen3",
      rank: 4,
    });
    const training = await clientOf(victim).createLoraTrainingClient({
      baseModel: "qwen3",
      rank: 4,
    });
    for (const { name, path: page, bytes, headers } of await worstBodies(
      hostile.modelId,
      "qwen3",
      0.5,
    )) {
      const attack = [1, 2].map(() => post(attacker, page, bytes, headers));
      const { metrics } = await training.forwardBackward(data, "cross_entropy");
      expect(metrics, name).toHaveProperty("loss:sum");
      for (const answer of attack) expect((await answer).status, name).toBeLessThan(500);
    }
    await training.optimStep({ learningRate: 1e-3 });
  });

  it("with hundreds of models makes it wait for single turns, and takes bounded memory", async () => {
    const training = await clientOf(victim).createLoraTrainingClient({
      baseModel: "qwen3",
      rank: 4,
    });
    const crowd = clientOf(attacker);
    const models = await Promise.all(
      Array.from({ length: 200 }, () =>
        crowd.createLoraTrainingClient({ baseModel: "qwen3", rank: 4 }),
      ),
    );
    let hostilePasses = 0;
    const over = new AbortController();
    const busy = models.map(async (model) => {
      while (!over.signal.aborted) {
        await model.forwardBackward(data, "cross_entropy");
        hostilePasses++;
      }
    });
    await training.forwardBackward(data, "cross_entropy");
    const before = hostilePasses;
    const rounds = 20;
    for (let round = 0; round < rounds; round++) {
      await training.forwardBackward(data, "cross_entropy");
    }
    // A turn for each of its own, and some that went by while nothing of it was in line.
    expect(hostilePasses - before).toBeLessThan(rounds * 40);
    const metrics = await fetch(`${baseUrl}/metrics`, { headers: { "x-api-key": victim } });
    const live = Number(/^tinker_live_models (.+)$/m.exec(await metrics.text())?.[1]);
    expect(live).toBeLessThanOrEqual(32);
    over.abort();
    await Promise.all(busy);
  });
});

type BodyOf = string | Uint8Array<ArrayBuffer>;
