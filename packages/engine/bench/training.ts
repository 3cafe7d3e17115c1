import type { Adapter, BaseModel, Datum, Engine } from "@tinker-ts/engine";
import { padded, randomDatum, randomIntegers } from "./data.js";
import { productSpeed } from "./machine.js";
import { bestMs, gigaflops, heading, line, meanMs, megabytes, percent } from "./measure.js";
import { createBenchModel, trainingOperations } from "./models.js";

const rank = 32;
const crossEntropy = { lossFn: "cross_entropy" } as const;
const goals = { S: "goal: at least 40 %", M: "goal: at least 75 %" } as const;
const budgetMs = { S: 2000, M: 8000 } as const;

/** A step: forward, backward and optimizer. */
async function step(adapter: Adapter, data: readonly Datum[]): Promise<void> {
  await adapter.forwardBackward(data, crossEntropy);
  await adapter.optimStep({ learningRate: 1e-5 });
}

async function measureSteps(
  name: keyof typeof budgetMs,
  model: BaseModel,
  lengths: readonly number[],
  time = bestMs,
): Promise<number> {
  const adapter = await model.createAdapter({ rank });
  const data = lengths.map((length, i) => randomDatum(model.vocabSize, length, 0, i + 1));
  await step(adapter, data);
  const ms = await time(budgetMs[name], () => step(adapter, data));
  await adapter.release();
  return ms;
}

/**
 * Speed of steps on 4 x 128 tokens, as a fraction of plain products around the same time: others share the
 * cores, and a step of seconds cannot pick its moment as a product of milliseconds can.
 */
export async function benchSteps(engine: Engine): Promise<void> {
  heading("Training steps, rank 32, 4 x 128 tokens");
  for (const name of ["S", "M"] as const) {
    const model = await createBenchModel(engine, name);
    const lengths = [128, 128, 128, 128];
    const before = await productSpeed(meanMs);
    const ms = await measureSteps(name, model, lengths, meanMs);
    const plain = Math.max(before, await productSpeed(meanMs));
    const speed = (trainingOperations(model.config, lengths, rank) * 1000) / ms;
    const tokensPerSecond = (512 * 1000) / ms;
    line(`${name}: time, tokens/s`, `${ms.toFixed(0)} ms, ${tokensPerSecond.toFixed(0)}`);
    line(`${name}: plain products just before and after`, gigaflops(plain));
    line(`${name}: fraction of plain products`, percent(speed / plain), goals[name]);
    await model.unload();
  }
}

/** How many data a ragged batch has. */
const raggedCounts = { S: 32, M: 8 } as const;

/** Data of many lengths with half of the targets masked, as they are and padded to one length. */
export async function benchRagged(engine: Engine): Promise<void> {
  heading("Ragged data: lengths from 16 to 512, half of the targets masked");
  for (const name of ["S", "M"] as const) {
    const model = await createBenchModel(engine, name);
    const adapter = await model.createAdapter({ rank });
    const random = randomIntegers(5);
    const ragged = Array.from({ length: raggedCounts[name] }, (_, i) => {
      const length = 16 + random(497);
      return randomDatum(model.vocabSize, length, Math.floor(length / 2), i + 1);
    });
    const equal = ragged.map((datum) => padded(datum, 512));
    const total = ragged.reduce((sum, { tokens }) => sum + tokens.length, 0);
    await step(adapter, ragged.slice(0, 2));
    const raggedMs = await bestMs(budgetMs[name], () => step(adapter, ragged));
    const paddedMs = await bestMs(budgetMs[name], () => step(adapter, equal));
    line(`${name}: ${ragged.length} ragged data, tokens/s`, ((total * 1000) / raggedMs).toFixed(0));
    line(`${name}: padded, the same tokens/s`, ((total * 1000) / paddedMs).toFixed(0));
    line(`${name}: ragged against padded`, `${(paddedMs / raggedMs).toFixed(2)} x`);
    await model.unload();
  }
}

/**
 * How time and memory grow with the number of tokens, in more data and in longer data. Attention over one
 * longer datum grows with the square: beside its growth stands that of the number of operations.
 */
export async function benchGrowth(engine: Engine): Promise<void> {
  heading("Growth with tokens on S (goal: twice the tokens take at most 2.2 times as long)");
  const model = await createBenchModel(engine, "S");
  const more = [512, 1024, 2048, 4096, 8192].map((tokens) =>
    Array.from({ length: tokens / 128 }, () => 128),
  );
  const longer = [512, 1024, 2048, 4096].map((tokens) => [tokens]);
  for (const [label, cases] of [
    ["more data of 128 tokens", more],
    ["one longer datum", longer],
  ] as const) {
    let last: { ms: number; operations: number } | undefined;
    for (const lengths of cases) {
      const ms = await measureSteps("S", model, lengths);
      const operations = trainingOperations(model.config, lengths, rank);
      const total = lengths.reduce((sum, length) => sum + length, 0);
      const growth = last === undefined ? "" : `, ${(ms / last.ms).toFixed(2)} x`;
      const work =
        last === undefined ? "" : `operations ${(operations / last.operations).toFixed(2)} x, `;
      const { rss } = process.memoryUsage();
      const notes = `${work}memory of the process ${megabytes(rss)}`;
      line(`${label}: ${total} tokens`, `${ms.toFixed(0)} ms${growth}`, notes);
      last = { ms, operations };
    }
  }
  await model.unload();
}
