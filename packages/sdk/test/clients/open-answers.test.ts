import { RequestFailedError, type ClientEvent } from "tinker-ts";
import { decodeJson, decodeProto, ModelInput } from "tinker-ts/wire";
import { describe, expect, it as test } from "vitest";
import { json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";

describe("an answer that is still pending", () => {
  it.for([
    ["neither id nor queue state", { type: "try_again" }],
    ["an id and a queue state of null", { type: "try_again", request_id: null, queue_state: null }],
    ["a queue state that is no text", { type: "try_again", queue_state: 7, queue_state_reason: 7 }],
  ] as const)("may have %s", async ([, answer], { service }) => {
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    service.server.script("retrieveFuture", json(answer));
    expect((await training.optimStep()).metrics).toEqual({ "lr:mean": 1 });
  });

  it("keeps a queue state of a newer server as it is", async ({ service }) => {
    const events: ClientEvent[] = [];
    const client = service.client({ onEvent: (event) => events.push(event) });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    service.server.script(
      "retrieveFuture",
      json({ type: "try_again", queue_state: "paused_moon" }),
    );
    const future = training.optimStep();
    await future;
    expect(events).toContainEqual(expect.objectContaining({ queueState: "paused_moon" }));
  });
});

describe("a failure keeps the server's message", () => {
  it.for([
    ["no category", { error: "out of disk" }, "out of disk"],
    ["a category of null", { error: "out of disk", category: null }, "out of disk"],
    ["a category that is a number", { error: "out of disk", category: 3 }, "out of disk"],
    [
      "an error that is an object",
      { error: { why: "disk" }, category: "server" },
      '{"why":"disk"}',
    ],
    ["an error that is a list", { error: ["a", 1] }, '["a",1]'],
    ["an error of null", { error: null }, "The server gave no reason."],
  ] as const)("with %s", async ([, answer, words], { service }) => {
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    service.server.script("retrieveFuture", json(answer));
    const error = await training.optimStep().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(RequestFailedError);
    expect(error).toHaveProperty("message", words);
  });
});

describe("lists", () => {
  const checkpoint = (type: string) => ({
    checkpoint_id: `weights/${type}`,
    checkpoint_type: type,
    time: "2026-01-02T03:04:05Z",
    tinker_path: `tinker://r/weights/${type}`,
  });

  it("keep a checkpoint of an unknown type among the others", async ({ service }) => {
    const checkpoints = [checkpoint("training"), checkpoint("quantized")];
    service.server.handle("listCheckpoints", () => json({ checkpoints }));
    const listed = await service.client().createRestClient().listCheckpoints("r");
    expect(listed.checkpoints.map(({ checkpointType }) => checkpointType)).toEqual([
      "training",
      "quantized",
    ]);
  });

  it("of training runs need no cursor", async ({ service }) => {
    service.server.handle("listTrainingRuns", () => json({ training_runs: [] }));
    const { cursor, trainingRuns } = await service.client().createRestClient().listTrainingRuns();
    expect({ cursor, trainingRuns }).toEqual({ cursor: null, trainingRuns: [] });
  });
});

describe("a sample", () => {
  it("keeps a stop reason of a newer server", async ({ service }) => {
    const sampling = await service.client().createSamplingClient({ baseModel: "m" });
    service.server.script(
      "retrieveFuture",
      json({ sequences: [{ stop_reason: "tool_call", tokens: [1] }], type: "samples" }),
    );
    const { sequences, type } = await sampling.sample({ prompt: [1] });
    expect(sequences[0]!.stopReason).toBe("tool_call");
    expect(type).toBe("sample");
  });

  test("keeps the number of a stop reason that protobuf has no name for", () => {
    // sequences (1) of: stop_reason (1) = 9, tokens (2) = nothing
    const bytes = Uint8Array.of(0x0a, 0x02, 0x08, 0x09);
    expect(decodeProto("SampleResponse", bytes).sequences[0]!.stopReason).toBe("stop_reason_9");
  });
});

test("a picture of a 0.4.1 client is read, with its length under today's name", () => {
  const data = Buffer.from("png").toString("base64");
  const old = { type: "image", data, format: "png", height: 3, width: 4, tokens: 12 };
  const chunks = [old, { ...old, type: "image_asset_pointer", data: undefined, location: "/x" }];
  const input = decodeJson("ModelInput", { chunks });
  expect(input).toBeInstanceOf(ModelInput);
  expect(input.chunks).toMatchObject([
    { type: "image", expectedTokens: 12 },
    { type: "image_asset_pointer", expectedTokens: 12 },
  ]);
  expect(input.chunks[0]).not.toHaveProperty("height");
  expect(() => decodeJson("ModelInput", { chunks: [{ ...old, depth: 1 }] })).toThrow(/depth/);
});
