import type { ClientEvent } from "tinker-ts";
import { decodeJson, decodeProto, decompressZstd } from "tinker-ts/wire";
import { describe, expect, it as test } from "vitest";
import { FakeService } from "../support/fake-service.js";
import { bare, drop, json } from "../support/scripted-server.js";
import { datum, serviceTest as it } from "../support/service-test.js";

const contentTypes = (service: FakeService) =>
  service.server.seen
    .filter(({ endpoint }) => endpoint === "forwardBackward" || endpoint === "forward")
    .map(({ headers }) => headers["content-type"]);

describe("a server without the configuration endpoint", () => {
  test("gets JSON", async () => {
    const service = await FakeService.start("json");
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    await training.forwardBackward([datum], "ppo", { lossFnConfig: { clip: 0.5 } });
    await training.forward([datum], "cross_entropy");
    const [backward] = service.server.requestsTo("forwardBackward");
    expect(decodeJson("ForwardBackwardRequest", backward!.body)).toMatchObject({
      modelId: training.modelId,
      seqId: 1,
      forwardBackwardInput: { lossFn: "ppo", lossFnConfig: { clip: 0.5 } },
    });
    const [forward] = service.server.requestsTo("forward");
    expect(decodeJson("ForwardRequest", forward!.body)).toMatchObject({ seqId: 2 });
    expect(
      service.server.requestsTo("retrieveFuture").map(({ headers }) => headers["accept"]),
    ).toEqual(["application/json", "application/json", "application/json"]);
    await service.close();
  });
});

describe("a server that refuses protobuf bodies", () => {
  it.for([415, 422])(
    "with %i gets JSON under the same number, from then on at once",
    async (status, { service }) => {
      const events: ClientEvent[] = [];
      const client = service.client({ onEvent: (event) => events.push(event) });
      const training = await client.createLoraTrainingClient({ baseModel: "m" });
      service.server.script("forwardBackward", json({ detail: "what is this" }, status));
      await training.forwardBackward([datum], "cross_entropy");
      await training.forwardBackward([datum], "cross_entropy");
      expect(contentTypes(service)).toEqual([
        "application/x-protobuf",
        "application/json",
        "application/json",
      ]);
      const seqIds = service.server
        .requestsTo("forwardBackward")
        .slice(1)
        .map(({ json: body }) => body?.["seq_id"]);
      expect(seqIds).toEqual([1, 2]);
      expect(events.filter(({ type }) => type === "dialect")).toMatchObject([{ dialect: "json" }]);
    },
  );

  it("and JSON too fails with its first error, and gets protobuf the next time", async ({
    service,
  }) => {
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    service.server.script("forwardBackward", json({ detail: "bad token" }, 422), bare(415));
    await expect(training.forwardBackward([datum], "cross_entropy")).rejects.toMatchObject({
      status: 422,
      body: { detail: "bad token" },
    });
    await training.forwardBackward([datum], "cross_entropy");
    expect(contentTypes(service).at(-1)).toBe("application/x-protobuf");
  });

  it.for([
    ["400", json({ detail: "expected a protobuf body" }, 400)],
    ["500", json({ detail: "crashed" }, 500)],
    ["a lost connection", drop("before")],
  ] as const)(
    "for their content and answers JSON with %s fails with the original error, and the client continues",
    async ([, second], { service }) => {
      const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
      service.server.script("forwardBackward", json({ detail: "length mismatch" }, 422), second);
      await expect(training.forwardBackward([datum], "cross_entropy")).rejects.toMatchObject({
        status: 422,
        body: { detail: "length mismatch" },
      });
      expect(contentTypes(service)).toEqual(["application/x-protobuf", "application/json"]);
      await training.forwardBackward([datum], "cross_entropy");
      await training.optimStep();
    },
  );

  it("and JSON for its form too fails with its first error", async ({ service }) => {
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    const second = json({ detail: "what is this" }, 422);
    service.server.script("forwardBackward", json({ detail: "no protobuf, please" }, 415), second);
    await expect(training.forwardBackward([datum], "cross_entropy")).rejects.toMatchObject({
      status: 415,
      body: { detail: "no protobuf, please" },
    });
  });

  it("with an error about the form gets JSON like any other request", async ({ service }) => {
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    const refusal = json({ detail: [{ type: "json_invalid", loc: ["body", 0] }] }, 422);
    service.server.script("forwardBackward", refusal, bare(503), bare(503));
    await training.forwardBackward([datum], "cross_entropy");
    expect(contentTypes(service).slice(1)).toEqual(Array(3).fill("application/json"));
  });

  it("after accepting one is taken literally", async ({ service }) => {
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    await training.forwardBackward([datum], "cross_entropy");
    service.server.script("forwardBackward", json({ detail: "bad token" }, 422));
    await expect(training.forwardBackward([datum], "cross_entropy")).rejects.toMatchObject({
      status: 422,
    });
    expect(contentTypes(service)).toEqual(["application/x-protobuf", "application/x-protobuf"]);
  });
});

describe("a server that sends results as JSON", () => {
  it("is treated as a JSON server until it accepts a protobuf body", async ({ service }) => {
    const client = service.client();
    const sampling = await client.createSamplingClient({ baseModel: "m" });
    service.server.script(
      "retrieveFuture",
      json({ sequences: [{ stop_reason: "stop", tokens: [1], logprobs: [-1] }], type: "sample" }),
    );
    await sampling.sample({ prompt: [1] });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    service.server.script("forwardBackward", bare(415));
    await training.forwardBackward([datum], "cross_entropy");
    expect(contentTypes(service)).toEqual(["application/json", "application/x-protobuf"]);
  });

  it("is asked for protobuf and JSON at first", async ({ service }) => {
    const sampling = await service.client().createSamplingClient({ baseModel: "m" });
    await sampling.sample({ prompt: [1] });
    expect(service.server.requestsTo("retrieveFuture")[0]!.headers["accept"]).toBe(
      "application/x-protobuf, application/json",
    );
  });
});

describe("a dialect that is given", () => {
  it("as proto is never changed", async ({ service }) => {
    const client = service.client({ dialect: "proto" });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    service.server.script("forwardBackward", bare(415));
    await expect(training.forwardBackward([datum], "cross_entropy")).rejects.toMatchObject({
      status: 415,
    });
  });

  it("as json is never changed", async ({ service }) => {
    const client = service.client({ dialect: "json" });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    await training.forwardBackward([datum], "cross_entropy");
    expect(contentTypes(service)).toEqual(["application/json"]);
    expect(service.server.requestsTo("retrieveFuture").at(-1)!.headers["accept"]).toBe(
      "application/json",
    );
  });
});

it("bodies are compressed if the server requests it", async ({ service }) => {
  service.flags["proto_compress_fwdbwd"] = true;
  const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
  service.server.handle("forwardBackward", () =>
    service.accept("ForwardBackwardOutput", { lossFnOutputType: "T", lossFnOutputs: [] }),
  );
  await training.forwardBackward([datum], "cross_entropy");
  const [seen] = service.server.requestsTo("forwardBackward");
  expect(seen!.headers["content-encoding"]).toBe("zstd");
  expect(decodeProto("ForwardBackwardRequest", await decompressZstd(seen!.body))).toMatchObject({
    seqId: 1,
  });
});

it("a body with an unknown outcome of its second form is not reported as refused", async ({
  service,
}) => {
  const client = service.client({ maxRetries: 0 });
  const training = await client.createLoraTrainingClient({ baseModel: "m" });
  service.server.script("forwardBackward", bare(415));
  service.server.handle("forwardBackward", () => drop("before"));
  await expect(training.forwardBackward([datum], "cross_entropy")).rejects.toMatchObject({
    name: "APIConnectionError",
  });
  await expect(training.optimStep()).rejects.toMatchObject({ name: "TrainingOrderError" });
});
