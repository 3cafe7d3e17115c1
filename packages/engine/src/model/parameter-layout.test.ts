import { describe, expect, it } from "vitest";
import { adapterTensorShapes, expectedTensors, readModelConfig } from "@tinker-ts/hub/weights";
import { fixture } from "../../test/support/fixtures.js";
import { adapterLayout, fullLayout, type ParameterLayout } from "./parameter-layout.js";

function shapesOf(layout: ParameterLayout) {
  return new Map(layout.tensors.map(({ name, shape }) => [name, shape]));
}

/** Every element belongs to exactly one tensor and one feed. */
function expectNoGaps(layout: ParameterLayout): void {
  let end = 0;
  for (const { offset, shape } of layout.tensors) {
    expect(offset).toBe(end);
    end += shape.reduce((product, dim) => product * dim, 1);
  }
  expect(end).toBe(layout.length);
  let feedEnd = 0;
  for (const { offset, length } of layout.feeds) {
    expect(offset).toBe(feedEnd);
    feedEnd += length;
  }
  expect(feedEnd).toBe(layout.length);
}

describe("parameter layouts", () => {
  it("have the tensors of PEFT files", async () => {
    const config = await readModelConfig(fixture("qwen3/model"));
    const layout = adapterLayout(config, ["q", "k", "v", "o", "head"], 3);
    const targets = ["q_proj", "k_proj", "v_proj", "o_proj", "lm_head"] as const;
    expect(shapesOf(layout)).toEqual(adapterTensorShapes(config, targets, 3));
    expectNoGaps(layout);
  });

  it.each([false, true])("have the tensors of a model, tied embeddings: %s", async (tied) => {
    const parsed = await readModelConfig(fixture("qwen2/model"));
    const config = { ...parsed, tiedEmbeddings: tied };
    const layout = fullLayout(config);
    expect(shapesOf(layout)).toEqual(expectedTensors(config));
    expectNoGaps(layout);
  });
});
