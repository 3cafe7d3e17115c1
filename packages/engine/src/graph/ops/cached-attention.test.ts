import fc from "fast-check";
import { expect, it } from "vitest";
import { Program } from "../../execution/program.js";
import { RandomStream } from "../../util/random.js";
import { compileGraph } from "../compile.js";
import { Graph } from "../graph.js";
import { cachedAttention, headStep } from "./index.js";

interface Case {
  readonly keyHeads: number;
  readonly group: number;
  readonly width: number;
  /** Earlier tokens of each sequence. */
  readonly earlier: readonly number[];
  readonly newTokens: number;
  readonly spare: number;
  readonly window: number | null;
  readonly seed: number;
}

const scale = 0.4;

const cases: fc.Arbitrary<Case> = fc
  .record({
    keyHeads: fc.integer({ min: 1, max: 3 }),
    group: fc.integer({ min: 1, max: 3 }),
    width: fc.constantFrom(headStep, 2 * headStep, 3 * headStep),
    earlier: fc.array(fc.integer({ min: 0, max: 70 }), { minLength: 1, maxLength: 4 }),
    newTokens: fc.integer({ min: 2, max: 64 }),
    prompt: fc.boolean(),
    spare: fc.integer({ min: 0, max: 9 }),
    window: fc.option(fc.integer({ min: 1, max: 60 })),
    seed: fc.integer(),
  })
  .map(({ prompt, earlier, newTokens, ...rest }) => ({
    ...rest,
    // Either a block of one prompt, or one token of several sequences.
    earlier: prompt ? earlier.slice(0, 1) : earlier.map((length) => length + 1),
    newTokens: prompt ? newTokens : 1,
  }));

/** The caches before a run, and the queries, keys and values of new tokens. */
function drawn({ keyHeads, group, width, earlier, newTokens, spare, seed }: Case) {
  const random = new RandomStream(seed);
  const values = (length: number) => Float32Array.from({ length }, () => random.nextNormal());
  const tokens = earlier.length * newTokens;
  const capacity = Math.max(...earlier) + newTokens + spare;
  const cacheLength = earlier.length * keyHeads * capacity * width;
  return {
    capacity,
    query: values(tokens * keyHeads * group * width),
    key: values(tokens * keyHeads * width),
    value: values(tokens * keyHeads * width),
    keys: values(cacheLength),
    values: values(cacheLength),
  };
}

async function run(one: Case, inputs: ReturnType<typeof drawn>): Promise<Float32Array> {
  const { keyHeads, group, width, earlier, newTokens } = one;
  const graph = new Graph();
  const rows = [earlier.length, newTokens];
  const cacheShape = [earlier.length, keyHeads, inputs.capacity, width];
  const { attended, keys, values } = cachedAttention({
    query: graph.input("query", [...rows, keyHeads * group * width]),
    key: graph.input("key", [...rows, keyHeads * width]),
    value: graph.input("value", [...rows, keyHeads * width]),
    cachedKeys: graph.input("keys", cacheShape),
    cachedValues: graph.input("values", cacheShape),
    lastPlaces: graph.input("lastPlaces", [earlier.length], "int32"),
    longest: graph.input("longest", [1], "int32"),
    scale,
    window: one.window,
  });
  const compiled = compileGraph(graph, {
    outputs: { attended, extendedKeys: keys, extendedValues: values },
  });
  const program = await Program.create(compiled, { threads: 1 });
  const result = new Float32Array(inputs.query.length);
  const { capacity: _, ...feeds } = inputs;
  await program.run(
    {
      ...feeds,
      lastPlaces: Int32Array.from(earlier, (length) => length + newTokens - 1),
      longest: Int32Array.of(Math.max(...earlier) + newTokens),
    },
    { attended: result, extendedKeys: inputs.keys, extendedValues: inputs.values },
    {},
  );
  await program.release();
  return result;
}

/** The same in plain numbers: the caches with the new tokens, and attention to them. */
function expected(one: Case, { capacity, query, key, value, ...cached }: ReturnType<typeof drawn>) {
  const { keyHeads, group, width, earlier, newTokens } = one;
  const [keys, values] = [cached.keys.slice(), cached.values.slice()];
  const attended = new Float32Array(query.length);
  const place = (row: number, head: number, token: number) =>
    ((row * keyHeads + head) * capacity + token) * width;
  for (const [row, length] of earlier.entries()) {
    for (let token = 0; token < newTokens; token++) {
      for (let head = 0; head < keyHeads; head++) {
        const from = ((row * newTokens + token) * keyHeads + head) * width;
        keys.set(key.subarray(from, from + width), place(row, head, length + token));
        values.set(value.subarray(from, from + width), place(row, head, length + token));
      }
      for (let head = 0; head < keyHeads * group; head++) {
        const at = ((row * newTokens + token) * keyHeads * group + head) * width;
        const end = length + token + 1;
        const first = Math.max(0, end - (one.window ?? end));
        const places = Array.from({ length: end - first }, (_, other) =>
          place(row, Math.floor(head / group), first + other),
        );
        const scores = places.map((start) => {
          let sum = 0;
          for (let i = 0; i < width; i++) sum += (query[at + i] ?? 0) * (keys[start + i] ?? 0);
          return sum * scale;
        });
        const top = Math.max(...scores);
        const total = scores.reduce((sum, score) => sum + Math.exp(score - top), 0);
        for (const [index, start] of places.entries()) {
          const probability = Math.exp((scores[index] ?? 0) - top) / total;
          for (let i = 0; i < width; i++) {
            attended[at + i]! += probability * (values[start + i] ?? 0);
          }
        }
      }
    }
  }
  return { attended, keys, values };
}

it("attends to earlier and new tokens, and extends the caches in place", async () => {
  await fc.assert(
    fc.asyncProperty(cases, async (one) => {
      const inputs = drawn(one);
      const want = expected(one, inputs);
      const attended = await run(one, inputs);
      for (const [index, number] of want.attended.entries()) {
        expect(attended[index]).toBeCloseTo(number, 4);
      }
      expect(inputs.keys).toEqual(want.keys);
      expect(inputs.values).toEqual(want.values);
    }),
    { numRuns: process.env.TINKER_TS_TEST_FULL ? 200 : 25 },
  );
});

it("refuses heads of an unsupported width", () => {
  const one = {
    keyHeads: 1,
    group: 1,
    width: 6,
    earlier: [2],
    newTokens: 1,
    spare: 0,
    seed: 1,
    window: null,
  };
  return expect(run(one, drawn(one))).rejects.toThrow("multiple of 8");
});
