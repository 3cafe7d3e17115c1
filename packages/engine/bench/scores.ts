import type { BaseModel, Engine, SampleRequest } from "@tinker-ts/engine";
import { randomIntegers } from "./data.js";
import { heading, line } from "./measure.js";
import { createBenchModel } from "./models.js";
import { tokenMs } from "./token-time.js";

const promptTokens = 384;
const perPosition = 20;
const decodedTokens = { S: 100, M: 30 } as const;
const rounds = 7;

/** What scores cost beside what they come with: a prompt with its own logprobs, and a step of decoding. */
export async function benchScores(engine: Engine): Promise<void> {
  heading(
    `${perPosition} scores for each position, against the same without, best of ${rounds} turns`,
  );
  for (const name of ["S", "M"] as const) {
    const model = await createBenchModel(engine, name);
    const random = randomIntegers(3);
    const draw = (length: number): Int32Array =>
      Int32Array.from({ length }, () => random(model.vocabSize));
    const prompt = draw(promptTokens);
    const plain = { prompt, maxTokens: 1, seed: 1 };
    const promptTargets = {
      rowStarts: Int32Array.from(prompt, (_, row) => row * perPosition),
      tokens: draw((promptTokens - 1) * perPosition),
    };
    const passMs = (request: SampleRequest) => () => timeOf(model, request);
    const own = passMs({ ...plain, promptLogprobs: true });
    await compare(`${name}: target scores`, own, passMs({ ...plain, promptTargets }), "10 %");
    const alternatives = { ...plain, promptAlternatives: perPosition };
    await compare(`${name}: alternatives`, own, passMs(alternatives));
    const stepMs = (topLogprobs: number) => () =>
      tokenMs(model, { prompt: prompt.slice(0, 64), seed: 1, topLogprobs }, decodedTokens[name]);
    await compare(`${name}: most likely tokens, decoding`, stepMs(0), stepMs(perPosition), "10 %");
    await model.unload();
  }
}

async function timeOf(model: BaseModel, request: SampleRequest): Promise<number> {
  const startMs = performance.now();
  await model.sample(request);
  return performance.now() - startMs;
}

/** Taking turns: others share the cores. */
async function compare(
  label: string,
  without: () => Promise<number>,
  withIt: () => Promise<number>,
  limit?: string,
): Promise<void> {
  await without();
  const best = [Infinity, Infinity];
  for (let round = 0; round < rounds; round++) {
    for (const [index, measure] of [without, withIt].entries()) {
      best[index] = Math.min(best[index] ?? Infinity, await measure());
    }
  }
  const [plainMs = NaN, ms = NaN] = best;
  const times = `${ms.toFixed(2)} against ${plainMs.toFixed(2)} ms`;
  line(
    label,
    `${(ms / plainMs).toFixed(3)} x`,
    `${times}${limit ? `; goal: at most ${limit} more` : ""}`,
  );
}
