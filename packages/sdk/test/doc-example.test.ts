import { readFileSync } from "node:fs";
import {
  trainWithRecovery,
  type CustomLossFn,
  type DatumLike,
  type ServiceClient,
  type TrainingClient,
} from "tinker-ts";
import { expect } from "vitest";
import { bare, json } from "./support/scripted-server.js";
import { datum, serviceTest as it } from "./support/service-test.js";

/*
 * Examples of docs/clients.md, word for word; here they are compiled under strict.
 */

const docsLoss: CustomLossFn = (_, logprobs) => {
  const values = logprobs.map((tensor) => Array.from(tensor.data, Number));
  const loss = values.flat().reduce((sum, x) => sum + x * x, 0);
  return {
    loss,
    gradients: values.map((row) => Float32Array.from(row, (x) => 2 * x)),
    metrics: { "squares:sum": loss },
  };
};

const stepOf = (path: string): number => Number(/step-(\d+)$/.exec(path)![1]);

async function docsRecovery(
  service: ServiceClient,
  training: TrainingClient,
  batches: readonly DatumLike[][],
): Promise<void> {
  await trainWithRecovery(service, training, async (client, recovered) => {
    // A checkpoint is named by the number of steps that are in it, which is the step to go on with.
    const start = recovered ? stepOf(recovered.checkpointPath) : 0;
    for (const [index, batch] of batches.slice(start).entries()) {
      await client.trainStep(batch, "cross_entropy");
      const done = start + index + 1;
      if (done % 50 === 0) await client.saveState(`step-${done}`, { overwrite: true });
    }
  });
}

const withoutIndents = (text: string): string => text.replaceAll(/^ +/gm, "");
const page = readFileSync(new URL("../../../docs/clients.md", import.meta.url), "utf8");
const own = readFileSync(new URL("doc-example.test.ts", import.meta.url), "utf8");

it("the custom loss of docs/clients.md compiles, runs, and matches the page", async ({
  service,
}) => {
  const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
  const { metrics } = await training.forwardBackwardCustom([datum], docsLoss);
  expect(metrics).toMatchObject({ "squares:sum": 0 });
  const body = /CustomLossFn = (\(_, logprobs\) => \{[^]*?\n\});/.exec(own)![1]!;
  expect(page).toContain(`forwardBackwardCustom(data, ${body})`);
});

it("the recovery of docs/clients.md trains every batch once, and matches the page", async ({
  service: fake,
}) => {
  const lostAfter = 60;
  let optimSteps = 0;
  const service = fake.client({
    dialect: "json",
    onEvent: (event) => {
      const isStep = event.type === "operationEnd" && event.operation === "optimStep";
      if (isStep && ++optimSteps === lostAfter) fake.server.script("optimStep", bare(404));
    },
  });
  const checkpoint = {
    checkpoint_id: "weights/step-50",
    checkpoint_type: "training",
    time: "2026-01-01T00:00:00Z",
    tinker_path: "tinker://run/weights/step-50",
  };
  fake.server.handle("listCheckpoints", () => json({ checkpoints: [checkpoint] }));
  fake.server.handle("weightsInfo", () => json({ base_model: "m", is_lora: true, lora_rank: 8 }));
  const training = await service.createLoraTrainingClient({ baseModel: "m" });
  const batches = Array.from({ length: 70 }, (_, step) => [{ ...datum, modelInput: [step, 2] }]);
  await docsRecovery(service, training, batches);
  const trained = fake.server.requestsTo("forwardBackward").map(({ json: body }) => {
    const { model_id: model, forward_backward_input: input } = body as {
      model_id: string;
      forward_backward_input: { data: { model_input: { chunks: { tokens: number[] }[] } }[] };
    };
    return { model, step: input.data[0]!.model_input.chunks[0]!.tokens[0] };
  });
  const stepsOf = (wanted: string) =>
    trained.filter(({ model }) => model === wanted).map(({ step }) => step);
  const [first, second] = [...new Set(trained.map(({ model }) => model))];
  expect(stepsOf(first!)).toEqual(Array.from({ length: lostAfter + 1 }, (_, step) => step));
  expect(stepsOf(second!)).toEqual(Array.from({ length: 20 }, (_, index) => 50 + index));
  expect(fake.server.requestsTo("saveWeights").map(({ json: body }) => body!["path"])).toEqual([
    "step-50",
  ]);
  const example = /  await trainWithRecovery\([^]*?\n  \}\);/.exec(own)![0];
  expect(withoutIndents(page)).toContain(withoutIndents(example));
});
