import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Datum } from "../../types/datum.js";
import { ModelInput } from "../../types/model-input.js";
import { TensorData } from "../../types/tensor-data.js";
import { estimateDatumBytes, estimatePromptBytes } from "../byte-estimate.js";
import { combineOutputs, reduceMetrics, tupleHash } from "./combine-outputs.js";
import { chunkData } from "./pass.js";
import { TurnLine } from "./training-run.js";
import { yieldToEventLoop } from "../../runtime/yield-to-event-loop.js";

const datumOf = (tokens: number) => new Datum({ modelInput: new Int32Array(tokens) });

describe("byte estimates", () => {
  it("count tokens, pictures, audio, tensors and sparse indices", () => {
    const modelInput = new ModelInput({
      chunks: [
        { tokens: [1, 2, 3] },
        { data: new Uint8Array(50), format: "png" },
        { dmel: new Uint8Array([4, 1, 7]) },
        { location: "http://x", format: "png" },
      ],
    });
    expect(estimatePromptBytes(modelInput)).toBe(30 + 50 + 3 + 8);
    const sparse = new TensorData({
      data: new Float32Array(2),
      shape: [2, 100],
      sparseCrowIndices: [0, 1, 2],
      sparseColIndices: [5, 6],
    });
    const datum = new Datum({
      modelInput,
      lossFnInputs: { target_tokens: new Int32Array(4), weights: sparse },
    });
    expect(estimateDatumBytes(datum)).toBe(12 + 50 + 3 + 8 + 4 * 8 + 2 * 4 + 5 * 8);
  });
});

describe("cutting data into chunks", () => {
  it("keeps order and all data, and respects both limits if possible", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(60), { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 10 }),
        fc.integer({ min: 0, max: 200 }),
        (sizes, maxDatums, maxBytes) => {
          const data = sizes.map(datumOf);
          const chunks = chunkData(data, { maxDatums, maxBytes });
          expect(chunks.flatMap((chunk) => chunk.data)).toEqual(data);
          for (const [index, chunk] of chunks.entries()) {
            expect(chunk.data.length).toBeGreaterThan(0);
            expect(chunk.data.length).toBeLessThanOrEqual(maxDatums);
            if (chunk.data.length > 1) expect(chunk.sizeBytes).toBeLessThanOrEqual(maxBytes);
            // No chunk could have taken the first datum of the next.
            const next = chunks[index + 1]?.data[0];
            const hasRoom =
              next !== undefined &&
              chunk.data.length < maxDatums &&
              chunk.sizeBytes + estimateDatumBytes(next) <= maxBytes;
            expect(hasRoom).toBe(false);
          }
        },
      ),
    );
  });
});

describe("the metrics of chunks", () => {
  const two = (name: string, first: number, second: number) =>
    reduceMetrics([
      { metrics: { [name]: first }, weight: 1 },
      { metrics: { [name]: second }, weight: 3 },
    ]);

  it.each([
    ["a:mean", 1, 4, { "a:mean": 3.25 }],
    ["b:sum", 1, 2, { "b:sum": 3 }],
    ["m:min", 5, 2, { "m:min": 2 }],
    ["m:max", 5, 2, { "m:max": 5 }],
    ["c:slack", 2, 5, { "c:slack": 0.75 }],
    ["d:unique", 7, 8, { "d:unique": 7, "d:unique_1": 8 }],
    ["h:hash_unordered", 3.9, 1, { "h:hash_unordered": Number(-1440771752368011620n) }],
    ["x:brand_new", 1, 2, {}],
    ["x:constructor", 1, 2, {}],
  ])("%s of %d and %d", (name, first, second, expected) => {
    expect(two(name, first, second)).toEqual(expected);
  });

  it("of a single chunk pass through the same reductions, so slack is zero", () => {
    const metrics = { "a:mean": 2, "b:sum": 3, "c:slack": 4, "d:unique": 5, "h:hash_unordered": 5 };
    expect(reduceMetrics([{ metrics, weight: 2 }])).toEqual({
      "a:mean": 2,
      "b:sum": 3,
      "c:slack": 0,
      "d:unique": 5,
      "h:hash_unordered": Number(-7813438383599366905n),
    });
  });

  it("come from the first chunk; what another lacks is left out", () => {
    expect(
      reduceMetrics([
        { metrics: { "a:sum": 1, "b:sum": 2 }, weight: 1 },
        { metrics: { "b:sum": 3, "c:sum": 4 }, weight: 1 },
      ]),
    ).toEqual({ "b:sum": 5 });
  });

  it.each(["loss", "a:b:sum", ""])("named %j fail the call", (name) => {
    expect(() => two(name, 1, 2)).toThrow(/name:reduction/);
  });

  it("that are means over nothing fail the call", () => {
    expect(() => reduceMetrics([{ metrics: { "a:mean": 1 }, weight: 0 }])).toThrow(/no outputs/);
  });
});

it.each([
  [[1n, 2n, 3n], 529344067295497451n],
  [[1n, 3n], -1440771752368011620n],
  [[5n], -7813438383599366905n],
])("the tuple hash of %s is Python's", (values, hash) => {
  expect(tupleHash(values)).toBe(hash);
});

it("outputs are joined in chunk order and keep the first type", () => {
  const output = (name: string) => ({
    lossFnOutputType: name,
    lossFnOutputs: [{ logprobs: new TensorData({ data: new Float32Array([name.length]) }) }],
    metrics: { "loss:sum": 1 },
  });
  const combined = combineOutputs([output("A"), output("BB")]);
  expect(combined.lossFnOutputType).toBe("A");
  expect(combined.lossFnOutputs.map(({ logprobs }) => logprobs!.toList())).toEqual([[1], [2]]);
  expect(combined.metrics).toEqual({ "loss:sum": 2 });
});

describe("a line of turns", () => {
  it("keeps its order when turns end early, and leaves none waiting", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ endsEarly: fc.boolean(), rounds: fc.nat(3) }), { maxLength: 20 }),
        async (operations) => {
          const line = new TurnLine();
          const ran: number[] = [];
          let running = 0;
          await Promise.all(
            operations.map(async ({ endsEarly, rounds }, index) => {
              const turn = line.take();
              if (endsEarly) {
                for (let round = 0; round < rounds; round++) await yieldToEventLoop();
                turn.end();
                return;
              }
              await turn.ready;
              running++;
              expect(running).toBe(1);
              for (let round = 0; round < rounds; round++) await yieldToEventLoop();
              ran.push(index);
              running--;
              turn.end();
            }),
          );
          const expected = [...operations.keys()].filter((index) => !operations[index]!.endsEarly);
          expect(ran).toEqual(expected);
        },
      ),
      { numRuns: 100 },
    );
  });
});
