import { readFileSync } from "node:fs";
import type { CustomLossFn } from "tinker-ts";
import { expect } from "vitest";
import { datum, serviceTest as it } from "./support/service-test.js";

/** The loss of docs/clients.md, word for word; that it stands here is what compiles it under strict. */
const docsLoss: CustomLossFn = (_, logprobs) => {
  const values = logprobs.map((tensor) => Array.from(tensor.data, Number));
  const loss = values.flat().reduce((sum, x) => sum + x * x, 0);
  return {
    loss,
    gradients: values.map((row) => Float32Array.from(row, (x) => 2 * x)),
    metrics: { "squares:sum": loss },
  };
};

it("the custom loss of docs/clients.md compiles, runs, and is what the page shows", async ({
  service,
}) => {
  const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
  const { metrics } = await training.forwardBackwardCustom([datum], docsLoss);
  expect(metrics).toMatchObject({ "squares:sum": 0 });
  const page = readFileSync(new URL("../../../docs/clients.md", import.meta.url), "utf8");
  const own = readFileSync(new URL("doc-example.test.ts", import.meta.url), "utf8");
  const body = /CustomLossFn = (\(_, logprobs\) => \{[^]*?\n\});/.exec(own)![1]!;
  expect(page).toContain(`forwardBackwardCustom(data, ${body})`);
});
