import { describe, expect, it } from "vitest";
import { HeldLayers } from "./model-runtime.js";
import type { WeightFeeds } from "./model-weights.js";

const layerOf = (layer: number): WeightFeeds => ({
  q: Float32Array.of(layer, layer + 0.5),
  up: Int8Array.of(layer, -layer),
});
const contents = (layers: readonly WeightFeeds[]) =>
  layers.map(({ q = [], up = [] }) => [[...q], [...up]]);
const three = [0, 1, 2].map(layerOf);

/** Three layers, and which of them were read again. */
function held() {
  const read: number[] = [];
  const first = [0, 1, 2].map(layerOf);
  const layers = new HeldLayers(first, async (layer) => {
    read.push(layer);
    return layerOf(layer);
  });
  return { layers, first, read };
}

describe("held layers", () => {
  it("free a released layer and read it again on demand", async () => {
    const { layers, first, read } = held();
    layers.release(1);
    expect(first.map(({ q }) => q?.byteLength)).toEqual([8, 0, 8]);
    expect([layers.spareBytes, layers.missingBytes]).toEqual([20, 10]);
    expect(contents([await layers.of(1), await layers.of(2)])).toEqual(contents(three.slice(1)));
    expect(read).toEqual([1]);
  });

  it("are kept once all of them were requested", async () => {
    const { layers, first, read } = held();
    layers.release(0);
    const all = layers.all();
    layers.release(2);
    expect(contents(await all)).toEqual(contents(three));
    layers.release(1);
    expect(contents(await layers.all())).toEqual(contents(three));
    expect(read).toEqual([0]);
    expect(first[2]?.q?.byteLength).toBe(8);
    expect([layers.spareBytes, layers.missingBytes]).toEqual([0, 0]);
  });

  it("are read again after a failed read", async () => {
    let isBroken = true;
    const layers = new HeldLayers([layerOf(0)], async (layer) => {
      if (isBroken) throw new Error("unreadable");
      return layerOf(layer);
    });
    layers.release(0);
    await expect(layers.all()).rejects.toThrow("unreadable");
    isBroken = false;
    expect(contents(await layers.all())).toEqual(contents([layerOf(0)]));
  });

  it("are kept if they cannot be read again", () => {
    const layers = new HeldLayers([layerOf(0)]);
    layers.release(0);
    expect(layers.missingBytes).toBe(0);
  });
});
