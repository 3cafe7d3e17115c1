import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { policyDatum, ServiceClient, supervisedDatum, type TrainingClient } from "tinker-ts";
import { afterAll, beforeAll, expect, it } from "vitest";

/*
 * Replays the responses of a SkyRL server (JAX, a small Qwen3 model) to this program. Responses to polls belong
 * to their request, all others come in the order in which they were recorded.
 */
interface Recorded {
  readonly method: string;
  readonly path: string;
  readonly requestId?: string;
  readonly status: number;
  readonly contentType: string;
  readonly body: unknown;
}

const file = new URL("../fixtures/skyrl-recording.json", import.meta.url);
const recording = JSON.parse(readFileSync(file, "utf8")) as readonly Recorded[];
const prompt = [2046, 1000, 500, 17, 2047, 10, 2046, 99, 10];
const data = [supervisedDatum(prompt, [33, 44, 2047]), supervisedDatum(prompt, [55, 2047])];

let server: Server;
let service: ServiceClient;
let training: TrainingClient;

beforeAll(async () => {
  const left = [...recording];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const text = Buffer.concat(parts).toString("latin1");
    const requestId = /"request_id":"(\d+)"/.exec(text)?.[1];
    const path = request.url!.split("?")[0];
    const index = left.findIndex(
      (entry) =>
        entry.method === request.method &&
        entry.path === path &&
        (requestId === undefined || entry.requestId === requestId),
    );
    if (path === "/api/v1/session_heartbeat") return response.end('{"type":"session_heartbeat"}');
    const found = left.splice(index, index < 0 ? 0 : 1)[0];
    if (!found) return response.writeHead(400).end("nothing of this is recorded");
    const body =
      typeof found.body === "string"
        ? Buffer.from(found.body, "base64")
        : Buffer.from(JSON.stringify(found.body));
    response.writeHead(found.status, {
      "content-type": found.contentType,
      "content-length": body.byteLength,
    });
    return response.end(body);
  };
  server = createServer((...exchange) => void answer(...exchange)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  service = new ServiceClient({ baseUrl, apiKey: "tml-any", telemetry: false });
  training = await service.createLoraTrainingClient({ baseModel: "tinker-ts/sprout", rank: 8 });
});

afterAll(async () => {
  await service.close();
  server.close();
});

it("a cluster that sends no loss still gets one, the sum of its losses per token", async () => {
  const before = await training.forward(data, "cross_entropy");
  const losses = before.lossFnOutputs.flatMap((output) => output["elementwise_loss"]!.toList());
  const sum = losses.reduce<number>((total, loss) => total + Number(loss), 0);
  expect(sum).toBeGreaterThan(1);
  expect(before.metrics["loss:sum"]).toBeCloseTo(sum, 3);
  for (let step = 0; step < 3; step++) {
    const { forwardBackward } = await training.trainStep(data, "cross_entropy");
    expect(forwardBackward.metrics["loss:sum"]).toBeGreaterThan(0);
  }
});

it("samples, and trains on the samples", async () => {
  const sampling = await training.saveWeightsAndGetSamplingClient();
  const { sequences } = await sampling.sample({
    prompt,
    numSamples: 2,
    samplingParams: { maxTokens: 4 },
  });
  expect(sequences.map(({ tokens }) => tokens.length)).toEqual([4, 4]);
  expect((await sampling.computeLogprobs(prompt)).length).toBeGreaterThan(prompt.length - 2);
  const pushed = sequences.map((sequence, index) => policyDatum(prompt, sequence, index ? 1 : -1));
  const { forwardBackward } = await training.trainStep(pushed, "importance_sampling");
  expect(Number.isFinite(forwardBackward.metrics["loss:sum"])).toBe(true);
  const custom = await training.forwardBackwardCustom(data, (_, logprobs) => ({
    loss: 1.25,
    gradients: logprobs.map((tensor) => new Float32Array(tensor.data.length)),
  }));
  expect(custom.metrics["loss:sum"]).toBe(1.25);
});

it("gives clear errors for missing features", async () => {
  const sequence = { tokens: [1, 2], logprobs: [-1, -1] };
  await expect(
    training.forwardBackward([policyDatum(prompt, sequence, 1)], "dro"),
  ).rejects.toMatchObject({
    name: "UnprocessableEntityError",
    message: expect.stringContaining(
      "forward_backward_input.loss_fn: Input should be 'cross_entropy'",
    ) as string,
  });
  const { path } = await training.saveState("one");
  await training.saveWeightsForSampler("two");
  // It loads only as a model's first request: the client goes on with a new model.
  const former = training.modelId;
  await training.loadState(path);
  expect(training.modelId).not.toBe(former);
  const rest = service.createRestClient();
  await expect(rest.listUserCheckpoints()).rejects.toMatchObject({
    name: "NotFoundError",
    message: expect.stringContaining("the server does not offer GET /api/v1/checkpoints") as string,
  });
  expect((await rest.listTrainingRuns()).trainingRuns).toHaveLength(1);
});
