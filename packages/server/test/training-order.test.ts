import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ManualClock } from "./support/manual-clock.js";
import { passBody, TestApp } from "./support/test-app.js";

let app: TestApp;
let model: string;
afterEach(() => app.dispose());

const step = (seqId: number | null, learningRate = 0.1) => ({
  adamParams: { learningRate },
  modelId: model,
  seqId,
});

const pointer = { type: "image_asset_pointer", format: "png", location: "https://x.example/a" };

describe("requests of one model", () => {
  beforeEach(async () => {
    app = await TestApp.open();
    model = await app.model(await app.session());
  });

  it("run in the order of their numbers whatever order they arrive in", async () => {
    const ids: string[] = [];
    for (const seq of [3, 2, 4, 1]) {
      ids.push((await app.call("forwardBackward", passBody(model, seq, [[seq]]))).requestId);
    }
    await Promise.all(ids.map((id) => app.result(id)));
    expect(app.engine.log).toEqual([1, 2, 3, 4].map((row) => `forwardBackward ${row}`));
  });

  it("are done once when the same request arrives several times, also at the same moment", async () => {
    const body = passBody(model, 1, [[7]]);
    const answers = await Promise.all([
      app.call("forwardBackward", body),
      app.call("forwardBackward", body),
    ]);
    await app.result(answers[0].requestId);
    const late = await app.call("forwardBackward", body);
    expect(new Set([...answers, late].map(({ requestId }) => requestId)).size).toBe(1);
    expect(await app.result(late.requestId)).toHaveProperty("metrics");
    expect(app.engine.log).toEqual(["forwardBackward 7"]);
  });

  it("are the same request in JSON and in protobuf", async () => {
    const body = passBody(model, 1, [[7, 8]]);
    const { encodeProto, compressZstd } = await import("tinker-ts/wire");
    const first = await app.call("forwardBackward", body);
    for (const isCompressed of [false, true]) {
      const bytes = encodeProto("ForwardBackwardRequest", body);
      const response = await app.handle(
        new Request("http://localhost/api/v1/forward_backward", {
          method: "POST",
          headers: {
            "content-type": "application/x-protobuf",
            ...(isCompressed ? { "content-encoding": "zstd" } : {}),
          },
          body: isCompressed ? ((await compressZstd(bytes)) as Uint8Array<ArrayBuffer>) : bytes,
        }),
      );
      expect(await response.json()).toMatchObject({ request_id: first.requestId });
    }
  });

  it("refuse another content or another kind under a number that was used", async () => {
    await app.call("forwardBackward", passBody(model, 1, [[7]]));
    const other = await app.fetch("forwardBackward", passBody(model, 1, [[8]]));
    expect(other.status).toBe(409);
    expect(other.headers.get("x-should-retry")).toBe("false");
    expect((await app.fetch("optimStep", step(1))).status).toBe(409);
  });

  it("stay distinct without numbers, unless one call is sent again", async () => {
    const bare = [await app.call("optimStep", step(null)), await app.call("optimStep", step(null))];
    expect(bare[0]!.requestId).not.toBe(bare[1]!.requestId);
    const headers = { "x-idempotency-key": "one call" };
    const retried = [
      await app.call("optimStep", step(null), { headers }),
      await app.call("optimStep", step(null), { headers }),
    ];
    expect(retried[0]!.requestId).toBe(retried[1]!.requestId);
    await Promise.all([...bare, ...retried].map(({ requestId }) => app.result(requestId)));
    expect(app.engine.log).toEqual(["optimStep", "optimStep", "optimStep"]);
  });

  it("run on after one of them failed", async () => {
    const bad = await app.call("forwardBackward", passBody(model, 1, [[1], [500]]));
    const good = await app.call("forwardBackward", passBody(model, 2, [[1]]));
    expect(await app.result(bad.requestId)).toEqual({
      error: "data[1]: token out of range",
      category: "user",
    });
    expect(await app.result(good.requestId)).toHaveProperty("loss_fn_outputs");
  });

  it.each([
    ["a loss that does not exist", { loss_fn: "nope" }, "loss_fn: expected cross_entropy"],
    ["data of another form", { data: [{ model_input: 1 }] }, "model_input"],
    [
      "a picture that would have to be fetched",
      { data: [{ model_input: { chunks: [pointer] }, loss_fn_inputs: {} }] },
      "image asset pointer",
    ],
  ])("fail in their turn and leave no gap when they ask for %s", async (_, wrong, problem) => {
    const input = { data: [], loss_fn: "cross_entropy", ...wrong };
    const body = { forward_backward_input: input, model_id: model, seq_id: 1 };
    const send = async () => {
      const response = await app.handle(
        new Request("http://localhost/api/v1/forward_backward", {
          method: "POST",
          body: JSON.stringify(body),
        }),
      );
      expect(response.status).toBe(200);
      return (await response.json()) as { request_id: string };
    };
    const { request_id: requestId } = await send();
    const later = await app.call("optimStep", step(2));
    expect(await app.result(requestId)).toEqual({
      error: expect.stringContaining(problem) as string,
      category: "user",
    });
    expect(await app.result(later.requestId)).toHaveProperty("metrics");
    expect(await send()).toMatchObject({ request_id: requestId });
    await app.restart();
    expect(await app.result((await app.call("optimStep", step(3))).requestId)).toBeTruthy();
    expect(app.engine.log).toEqual(["optimStep", "optimStep", "optimStep"]);
  });

  it("fail in their turn in protobuf too", async () => {
    const { encodeProto } = await import("tinker-ts/wire");
    const bytes = Buffer.from(encodeProto("ForwardBackwardRequest", passBody(model, 1, [[7]])));
    bytes.write("entropy_cross", bytes.indexOf("cross_entropy"));
    const response = await app.handle(
      new Request("http://localhost/api/v1/forward_backward", {
        method: "POST",
        headers: { "content-type": "application/x-protobuf" },
        body: bytes,
      }),
    );
    const { request_id: pass } = (await response.json()) as { request_id: string };
    const last = await app.call("optimStep", step(2));
    expect(await app.result(pass)).toMatchObject({ category: "user" });
    expect(await app.result(last.requestId)).toHaveProperty("metrics");
  });

  it("refuse number 0, which is the creation", async () => {
    const response = await app.fetch("optimStep", step(0));
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("seq_id");
  });

  it("accept the next one even when the queue is full", async () => {
    await app.dispose();
    app = await TestApp.open({ limits: { maxPendingPerModel: 2 } });
    model = await app.model(await app.session());
    await app.call("optimStep", step(2));
    const tooFar = await app.fetch("optimStep", step(3));
    expect(tooFar.status).toBe(429);
    expect(tooFar.headers.get("retry-after-ms")).toBe("1000");
    await app.result((await app.call("optimStep", step(1))).requestId);
    await app.call("optimStep", step(3));
  });
});

it("says what a request behind a gap is waiting for", async () => {
  const clock = new ManualClock();
  app = await TestApp.open({ clock });
  model = await app.model(await app.session());
  const { requestId } = await app.call("optimStep", step(7));
  const poll = app.fetch("retrieveFuture", { requestId });
  await clock.advance(20_000);
  const response = await poll;
  expect(response.status).toBe(408);
  expect(await response.json()).toEqual({
    type: "try_again",
    request_id: requestId,
    queue_state: "paused_capacity",
    queue_state_reason: "waiting for request 1 of this model, which has not arrived",
  });
});

it("finishes what runs when it stops, and does the rest after the next start", async () => {
  app = await TestApp.open();
  model = await app.model(await app.session());
  const arrived = app.engine.gates.close("forwardBackward");
  const first = await app.call("forwardBackward", passBody(model, 1, [[1]]));
  const second = await app.call("forwardBackward", passBody(model, 2, [[2]]));
  await arrived;
  const stopped = app.stop();
  app.engine.gates.open("forwardBackward");
  await stopped;
  expect(app.engine.log).toEqual(["forwardBackward 1"]);
  await app.start();
  expect(await app.result(first.requestId)).toHaveProperty("metrics");
  expect(await app.result(second.requestId)).toHaveProperty("metrics");
});

it("fails the requests of a model that could not be created, with the reason", async () => {
  app = await TestApp.open();
  app.engine.isUnreadable = true;
  const sessionId = await app.session();
  const create = await app.call("createModel", { sessionId, modelSeqId: 0, baseModel: "toy" });
  model = create.modelId!;
  const next = await app.fetch("optimStep", step(1));
  expect(await app.result(create.requestId)).toMatchObject({ category: "server" });
  if (next.status === 200) {
    const { request_id } = (await next.json()) as { request_id: string };
    expect(await app.result(request_id)).toMatchObject({
      error: expect.stringContaining("could not be created") as string,
    });
  }
  await expect.poll(async () => (await app.fetch("optimStep", step(2))).status).toBe(410);
});
