import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TestApp, passBody } from "../support/test-app.js";
import { getRun, getSeries, listRuns, trainSteps } from "./support.js";

let app: TestApp;
beforeEach(async () => {
  app = await TestApp.open();
});
afterEach(() => app.dispose());

describe("what the server records by itself", () => {
  it("makes a run of every model, with a point per step", async () => {
    const modelId = await app.model(await app.session());
    await trainSteps(app, modelId, 3);
    const [run] = await listRuns(app);
    expect(run).toMatchObject({
      id: modelId,
      source: "server",
      kind: "supervised",
      baseModel: "toy",
      rank: 8,
      step: 3,
      status: "running",
    });
    const [nll, rate] = await getSeries(app, modelId, ["nll", "learning_rate:mean"]);
    expect([...nll!.x]).toEqual([0, 1, 2]);
    expect([...rate!.mean].map((value) => value.toFixed(3))).toEqual(["0.100", "0.100", "0.100"]);
    expect(run!.curve).toHaveLength(3);
    expect(run!.nll).toMatchObject({ key: "nll", nonFinite: 0 });
  });

  it("merges the passes of a step as their names say", async () => {
    const modelId = await app.model(await app.session());
    const bodies = [passBody(modelId, 1, [[1, 2, 3]]), passBody(modelId, 2, [[4, 5, 6, 7]])];
    const metrics: Record<string, number>[] = [];
    for (const body of bodies) {
      const { requestId } = await app.call("forwardBackward", body);
      metrics.push((await app.result(requestId))["metrics"] as Record<string, number>);
    }
    const [loss, nll] = await getSeries(app, modelId, ["loss:sum", "nll"]);
    const sum = metrics[0]!["loss:sum"]! + metrics[1]!["loss:sum"]!;
    expect([...loss!.mean]).toEqual([Math.fround(sum)]);
    const weights = (metrics[0]!["weights:sum"] ?? 3) + (metrics[1]!["weights:sum"] ?? 4);
    expect(nll!.mean[0]).toBeCloseTo(sum / weights, 5);
  });

  it("counts nothing twice when the server starts again and repeats its journal", async () => {
    const modelId = await app.model(await app.session());
    const seq = await trainSteps(app, modelId, 2);
    const before = await getSeries(app, modelId, ["loss:sum", "step:max"]);
    await app.restart();
    expect(await getSeries(app, modelId, ["loss:sum", "step:max"])).toEqual(before);
    await trainSteps(app, modelId, 1, { firstSeq: seq });
    const [loss] = await getSeries(app, modelId, ["loss:sum"]);
    expect([...loss!.x]).toEqual([0, 1, 2]);
  });

  it("keeps passes without gradients apart", async () => {
    const modelId = await app.model(await app.session());
    const seq = await trainSteps(app, modelId, 2);
    const { forwardBackwardInput } = passBody(modelId, seq, [[1, 2, 3]]);
    const body = { modelId, seqId: seq, forwardInput: forwardBackwardInput };
    const { requestId } = await app.call("forward", body);
    await app.result(requestId);
    const [own, trained] = await getSeries(app, modelId, ["forward/nll", "nll"]);
    expect([...own!.x]).toEqual([2]);
    expect([...trained!.x]).toEqual([0, 1]);
  });

  it("marks a failed request, and shows the run's state in the server's words", async () => {
    const modelId = await app.model(await app.session());
    const seq = await trainSteps(app, modelId, 1);
    const { requestId } = await app.call("loadWeights", {
      modelId,
      seqId: seq,
      path: `tinker://${modelId}/weights/none`,
      optimizer: false,
    });
    const failure = await app.result(requestId);
    const run = await getRun(app, modelId);
    expect(run.marks).toMatchObject([
      { x: 1, kind: "failed", subject: requestId, text: failure["error"] },
    ]);
    expect(run).toMatchObject({ status: "failed", statusReason: failure["error"] });
  });

  it("remembers which checkpoint a run has begun from, and the step of each", async () => {
    const sessionId = await app.session();
    const modelId = await app.model(sessionId);
    const seq = await trainSteps(app, modelId, 2);
    const saved = await app.call("saveWeights", { modelId, seqId: seq, path: "half" });
    const { path } = (await app.result(saved.requestId)) as { path: string };
    const second = await app.model(sessionId, { seq: 1 });
    const body = { modelId: second, seqId: 1, path, optimizer: true };
    const { requestId } = await app.call("loadWeights", body);
    await app.result(requestId);
    expect((await getRun(app, second)).parent).toBe(path);
    const { checkpoints } = await getRun(app, modelId);
    expect(checkpoints).toMatchObject([{ path, step: 2, kind: "training", name: "half" }]);
    expect(checkpoints[0]!.nll).toBeTypeOf("number");
  });

  it("records nothing when recording is off", async () => {
    const quiet = await TestApp.open({ recording: false });
    try {
      const modelId = await quiet.model(await quiet.session());
      await trainSteps(quiet, modelId, 1);
      expect(await listRuns(quiet)).toEqual([]);
    } finally {
      await quiet.dispose();
    }
  });
});
