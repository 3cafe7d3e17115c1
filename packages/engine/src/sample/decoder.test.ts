import { afterAll, beforeAll, expect, it } from "vitest";
import { loadFixtureModel } from "../../test/support/fixture-model.js";
import { cachedHeadWidth } from "../model/cached-attention.js";
import type { ModelRuntime } from "../model/model-runtime.js";
import { AdapterSet, noAdapter } from "./adapter-set.js";
import { Decoder, type HeadRow } from "./decoder.js";
import { KvRows } from "./kv-rows.js";

const base = noAdapter();
const prompt = Int32Array.of(5, 1, 4, 1, 2, 3);
let models: readonly ModelRuntime[];

beforeAll(async () => {
  // Programs are kept by the model: a decoder of other parts needs a model of its own.
  models = await Promise.all([loadFixtureModel("qwen3", 2), loadFixtureModel("qwen3", 2)]);
});
afterAll(() => Promise.all(models.map((model) => model.release())));

/** Reads a prompt with one decoder, then one more token, and gives the logits of the chosen rows. */
async function read(model: ModelRuntime, decoder: Decoder, head: readonly HeadRow[]) {
  const { layers, kvHeads } = model.config;
  const cache = new KvRows({ layers, kvHeads, headWidth: cachedHeadWidth(model.config) }, 8, 1);
  const common = { cache, adapters: new AdapterSet(model.config, [base]), adapterIds: [base.id] };
  const run = async (tokens: Int32Array, rows: readonly HeadRow[]) => {
    const logits: number[] = [];
    const input = { ...common, tokens, newTokens: tokens.length, head: rows };
    await decoder.run(input, (output, start) => {
      expect(logits.length).toBe(start * model.config.vocabSize);
      logits.push(...output.logits);
    });
    return logits;
  };
  const logits = await run(prompt, head);
  const next = await run(Int32Array.of(7), [{ row: 0, temperature: 1 }]);
  expect(cache.length(0)).toBe(prompt.length + 1);
  return { logits, next };
}

it("gives the same results in one program and in many", async () => {
  const [whole, divided] = models;
  if (whole === undefined || divided === undefined) throw new Error("unreachable");
  const rows = [2, 5].map((row) => ({ row, temperature: 1 }));
  const expected = await read(whole, new Decoder(whole), rows);
  const smallest = new Decoder(divided, { programBytes: 1 });
  expect(await read(divided, smallest, rows)).toEqual(expected);
  const { next } = await read(divided, smallest, []);
  expect(next).toEqual(expected.next);
  expect(await Promise.all([whole, divided].map(hasProgramOfSecondLayer))).toEqual([false, true]);
});

function hasProgramOfSecondLayer({ programs }: ModelRuntime): Promise<boolean> {
  const notMade = (): never => {
    throw new Error("there is no such program");
  };
  return programs.get("decoder from 1", notMade).then(
    () => true,
    () => false,
  );
}

it.each([1000, 1])(
  "gives the same results with an unembedding in parts of %i bytes",
  async (matrixBytes) => {
    const [whole] = models;
    if (whole === undefined) throw new Error("unreachable");
    const divided = await loadFixtureModel("qwen3", 2);
    const rows = [2, 5].map((row) => ({ row, temperature: 1 }));
    const expected = await read(whole, new Decoder(whole), rows);
    const found = await read(divided, new Decoder(divided, { matrixBytes }), rows);
    await divided.release();
    expect(found).toEqual(expected);
  },
);

it("gives the same results for rows in parts and at once", async () => {
  const [whole, divided] = models;
  if (whole === undefined || divided === undefined) throw new Error("unreachable");
  const rows = Array.from(prompt, (_, row) => ({ row, temperature: 1 }));
  const expected = await read(whole, new Decoder(whole), rows);
  // Room for one row, and for a number that does not divide theirs.
  for (const tableBytes of [1, 4 * 20 * whole.config.vocabSize]) {
    const narrow = new Decoder(divided, { programBytes: 1, tableBytes });
    expect(await read(divided, narrow, rows)).toEqual(expected);
  }
});

it("gives a row the same logits whichever other rows are requested", async () => {
  const [model] = models;
  if (model === undefined) throw new Error("unreachable");
  const decoder = new Decoder(model);
  const every = await read(
    model,
    decoder,
    Array.from(prompt, (_, row) => ({ row, temperature: 1 })),
  );
  const last = await read(model, decoder, [{ row: prompt.length - 1, temperature: 0.5 }]);
  expect(last.logits).toEqual(every.logits.slice(-model.config.vocabSize));
  expect(last.next).toEqual(every.next);
});
