import { afterEach, expect, it } from "vitest";
import { passBody, TestApp } from "./support/test-app.js";

let app: TestApp | undefined;
afterEach(() => app?.dispose());

it("runs requests in the order of their numbers whatever order they arrive in", async () => {
  app = await TestApp.open();
  const model = await app.model(await app.session());
  const ids: string[] = [];
  for (const seq of [3, 2, 4, 1]) {
    const { requestId } = await app.call("forwardBackward", passBody(model, seq, [[seq]]));
    ids.push(requestId);
  }
  await Promise.all(ids.map((id) => app!.result(id)));
  expect(app.engine.log).toEqual(["1", "2", "3", "4"].map((row) => `forwardBackward ${row}`));
});

it("trains, saves, and gives the same model back after a restart", async () => {
  app = await TestApp.open();
  const model = await app.model(await app.session());
  await app.call("forwardBackward", passBody(model, 1, [[1, 2, 3]]));
  const adamParams = { learningRate: 0.1 };
  const { requestId } = await app.call("optimStep", { adamParams, modelId: model, seqId: 2 });
  await app.result(requestId);
  const before = await app.result(
    (
      await app.call("forward", {
        modelId: model,
        seqId: 3,
        forwardInput: passBody(model, 3, [[5, 6]]).forwardBackwardInput,
      })
    ).requestId,
  );
  await app.restart();
  const after = await app.result(
    (
      await app.call("forward", {
        modelId: model,
        seqId: 4,
        forwardInput: passBody(model, 3, [[5, 6]]).forwardBackwardInput,
      })
    ).requestId,
  );
  expect(after).toEqual(before);
});
