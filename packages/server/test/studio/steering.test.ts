import { readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { StudioExhibits, StudioMachine, StudioSaved } from "tinker-ts/wire";
import { passBody, TestApp } from "../support/test-app.js";
import { askStudio, getRun, getStudio, postStudio, trainSteps } from "./support.js";

let app: TestApp;
beforeEach(async () => {
  app = await TestApp.open({ limits: { longPollMs: 50 } });
});
afterEach(() => app.dispose());

const at = (id: string, action: string) => `runs/${encodeURIComponent(id)}/${action}`;

describe("pause", () => {
  it("begins nothing new, notifies waiting clients, and lasts over a restart", async () => {
    const modelId = await app.model(await app.session());
    await postStudio(app, at(modelId, "pause"));
    const { requestId } = await app.call("forwardBackward", passBody(modelId, 1, [[1, 2]]));
    const told = async () => {
      const response = await app.fetch("retrieveFuture", { requestId });
      expect(response.status).toBe(408);
      return (await response.json()) as Record<string, unknown>;
    };
    const note = { queue_state: "paused_capacity", queue_state_reason: "paused in the studio" };
    expect(await told()).toMatchObject(note);
    expect(app.engine.log.filter((line) => line.startsWith("forwardBackward"))).toEqual([]);
    const { lanes } = await getStudio<StudioMachine>(app, "machine");
    expect(lanes).toMatchObject([
      { model: modelId, waiting: 1, isPaused: true, note: { reason: "paused in the studio" } },
    ]);
    await app.restart();
    expect(await told()).toMatchObject(note);
    expect(await getRun(app, modelId)).toMatchObject({ status: "paused", isPaused: true });
    await postStudio(app, at(modelId, "resume"));
    expect(await app.result(requestId)).toHaveProperty("metrics");
    expect(await getRun(app, modelId)).toMatchObject({ status: "running", isPaused: false });
  });
});

describe("save now", () => {
  it("makes a checkpoint that can be loaded, and changes nothing about the training", async () => {
    const sessionId = await app.session();
    const train = async (seq: number, saves: boolean) => {
      const modelId = await app.model(sessionId, { seq });
      let next = await trainSteps(app, modelId, 2);
      const { requestId } = await app.call("forwardBackward", passBody(modelId, next++, [[7, 8]]));
      await app.result(requestId);
      const saved = saves ? await postStudio<StudioSaved>(app, at(modelId, "save")) : null;
      const step = { modelId, seqId: next++, adamParams: { learningRate: 0.1 } };
      await app.result((await app.call("optimStep", step)).requestId);
      const { forwardBackwardInput: forwardInput } = passBody(modelId, next, [[1, 2, 3]]);
      const last = await app.call("forward", { modelId, seqId: next, forwardInput });
      return { saved, result: await app.result(last.requestId) };
    };
    const plain = await train(0, false);
    const { saved, result } = await train(1, true);
    expect(result).toEqual(plain.result);
    const third = await app.model(sessionId, { seq: 2 });
    const load = { modelId: third, seqId: 1, path: saved!.path, optimizer: true };
    const { requestId } = await app.call("loadWeights", load);
    expect(await app.result(requestId)).toMatchObject({ path: saved!.path });
  });

  it("works while the run is paused, and refuses a name that is taken", async () => {
    const modelId = await app.model(await app.session());
    await trainSteps(app, modelId, 1);
    await postStudio(app, at(modelId, "pause"));
    await postStudio(app, at(modelId, "save"), { name: "mine", kind: "sampler" });
    const { checkpoints } = await getRun(app, modelId);
    expect(checkpoints).toMatchObject([{ name: "mine", kind: "sampler", step: 1 }]);
    const again = { method: "POST", body: { name: "mine", kind: "sampler" } };
    const refused = await askStudio(app, at(modelId, "save"), again);
    expect(refused.status).toBe(409);
    expect(await refused.text()).toContain("choose another name");
  });
});

describe("just stop", () => {
  it("ends the model, and the loop's error says who stopped it", async () => {
    const modelId = await app.model(await app.session());
    void app.engine.gates.close("forwardBackward");
    const { requestId } = await app.call("forwardBackward", passBody(modelId, 1, [[1, 2]]));
    await postStudio(app, at(modelId, "stop"), { how: "now" });
    expect(await app.result(requestId)).toMatchObject({
      category: "user",
      error: expect.stringContaining("stopped in the studio by local") as string,
    });
    const refused = await app.fetch("forwardBackward", passBody(modelId, 2, [[1, 2]]));
    expect(refused.status).toBe(410);
    expect(await getRun(app, modelId)).toMatchObject({ status: "stopped" });
  });

  it("cannot ask a loop that has no logger to save", async () => {
    const modelId = await app.model(await app.session());
    const options = { method: "POST", body: { how: "save" } };
    const refused = await askStudio(app, at(modelId, "stop"), options);
    expect(refused.status).toBe(409);
  });
});

describe("labels", () => {
  it("stay over a restart and reach other pages", async () => {
    const modelId = await app.model(await app.session());
    const label = { name: "<img src=x>", tags: ["a"], group: "g", isPinned: true };
    await postStudio(app, at(modelId, "label"), label);
    await app.restart();
    expect(await getRun(app, modelId)).toMatchObject(label);
  });
});

describe("exhibits", () => {
  it("are a sample of each step's data, token by token", async () => {
    const modelId = await app.model(await app.session());
    const rows = Array.from({ length: 30 }, (_, index) => [1, 2, index % 7]);
    const { requestId } = await app.call("forwardBackward", passBody(modelId, 1, rows));
    await app.result(requestId);
    const query = `exhibits?run=${encodeURIComponent(modelId)}&kind=datum`;
    const { exhibits, steps, seen } = await getStudio<StudioExhibits>(app, query);
    expect(exhibits).toHaveLength(8);
    expect(steps).toEqual([0]);
    expect(seen).toBe(30);
    expect(exhibits[0]).toMatchObject({ index: 0, tokenCount: 4, trainedCount: 3, step: 0 });
    const detail = await getStudio(app, `exhibits/${exhibits[0]!.id}`);
    expect(detail).toMatchObject({
      tokens: { ids: [1, 2, 0, 0], weight: [null, 1, 1, 1], logprob: [null, -1, -2, 0] },
    });
  });

  it("of the last step are known to a page that comes right behind it", async () => {
    const modelId = await app.model(await app.session());
    await trainSteps(app, modelId, 3);
    expect((await getRun(app, modelId)).exhibitSteps.datum).toEqual([0, 1, 2]);
  });

  it("that are damaged on disk say so, and their numbers stay in the list", async () => {
    const modelId = await app.model(await app.session());
    const rows = Array.from({ length: 30 }, () => Array.from({ length: 300 }, () => 1));
    const { requestId } = await app.call("forwardBackward", passBody(modelId, 1, rows));
    await app.result(requestId);
    const query = `exhibits?run=${encodeURIComponent(modelId)}&kind=datum`;
    const { exhibits } = await getStudio<StudioExhibits>(app, query);
    const folder = path.join(app.dataDir, "exhibits");
    for (const file of readdirSync(folder)) writeFileSync(path.join(folder, file), "{}");
    const answer = await askStudio(app, `exhibits/${exhibits[0]!.id}`);
    expect([answer.status, await answer.text()]).toEqual([410, expect.stringContaining("damaged")]);
    const listed = await getStudio<StudioExhibits>(app, query);
    expect(listed.exhibits.map(({ nll }) => nll)).toEqual(exhibits.map(({ nll }) => nll));
  });

  it("are all kept, or none, by the server's option", async () => {
    for (const [capture, count] of [
      ["all", 30],
      ["off", 0],
    ] as const) {
      const other = await TestApp.open({ capture });
      const modelId = await other.model(await other.session());
      const rows = Array.from({ length: 30 }, () => [1, 2, 3]);
      const { requestId } = await other.call("forwardBackward", passBody(modelId, 1, rows));
      await other.result(requestId);
      await other.restart();
      const found = await getStudio<StudioExhibits>(
        other,
        `exhibits?run=${encodeURIComponent(modelId)}`,
      );
      expect(found.exhibits).toHaveLength(count);
      await other.dispose();
    }
  });
});
