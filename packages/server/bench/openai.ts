import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Engine } from "@tinker-ts/engine";
import { loadTokenizer } from "@tinker-ts/hub";
import { writeBenchModel, type BenchModel } from "./bench-model.js";
import { withServer, type BenchServer } from "./bench-server.js";
import { line, median, undisturbed } from "./measure.js";

const firstTokenLimitMs = 5;
const manyStreams = 500;
const manyTokens = 16;

/** What is asked of a stream: how often, how long, and the least part of the engine's speed. */
interface StreamTask {
  readonly rounds: number;
  readonly maxTokens: number;
  readonly leastShare: number;
}

/** Streams of chat completions: what they cost on top of the engine, and how many there can be. */
export async function reportOpenAi(model: BenchModel): Promise<void> {
  const task = { rounds: 30, maxTokens: 200, leastShare: 0.9 };
  const rate = await reportStream(model, task, { firstToken: true });
  await withServer(model, { threads: 1, limits: { maxStreams: 64 } }, (server) =>
    reportMany(server, rate),
  );
  const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-bench-"));
  try {
    await reportStream(await writeBenchModel("S", folder), task);
    const larger = { rounds: 10, maxTokens: 60, leastShare: 0.98 };
    await reportStream(await writeBenchModel("M", folder), larger);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * The same prompt by the engine alone and through the server, turn by turn, with one thread each.
 * Returns the engine's tokens per second.
 */
async function reportStream(
  model: BenchModel,
  { rounds, maxTokens, leastShare }: StreamTask,
  { firstToken = false } = {},
): Promise<number> {
  const tokenizer = await loadTokenizer(model.folder);
  const content = "The cat sat on the mat and looked at the garden. ".repeat(12);
  const { tokens: prompt } = await tokenizer.encodeChat([{ role: "user", content }], {
    addGenerationPrompt: true,
  });
  const engine = await Engine.create({ threads: 1 });
  const base = await engine.loadModel(model.folder);
  const alone = { first: [] as number[], rate: [] as number[] };
  const served = { first: [] as number[], rate: [] as number[] };
  await withServer(model, { threads: 1 }, async (server) => {
    const warmUps = 3;
    for (let round = 0; round < rounds + warmUps; round++) {
      const measures = [
        [alone, await runAlone(round)],
        [served, await runServed(server, round)],
      ] as const;
      // The first rounds compile graphs and open connections.
      if (round < warmUps) continue;
      for (const [kept, { firstMs, tokensPerSecond }] of measures) {
        kept.first.push(firstMs);
        kept.rate.push(tokensPerSecond);
      }
    }
  });
  await engine.close();
  if (firstToken) {
    const aloneMs = undisturbed(alone.first);
    const is = undisturbed(served.first) - aloneMs;
    const figure = `${is.toFixed(1)} ms to ${aloneMs.toFixed(1)} ms`;
    line("first token, added", figure, { of: firstTokenLimitMs, is });
  }
  const [ours, theirs] = [median(served.rate), median(alone.rate)];
  const share = `${((ours / theirs) * 100).toFixed(1)} %, at least ${leastShare * 100} %`;
  line(
    `one stream, ${model.name}`,
    `${ours.toFixed(0)} of the engine's ${theirs.toFixed(0)} tokens/s: ${share}`,
  );
  return theirs;

  async function runAlone(seed: number): Promise<Measured> {
    const startedAt = performance.now();
    let firstAt = 0;
    // Another first token each time, so that nothing of the prompt is remembered.
    const own = Int32Array.from(prompt);
    own[3] = 300 + seed;
    const { samples } = await base.sample({
      prompt: own,
      maxTokens,
      temperature: 1,
      seed,
      onToken: () => {
        firstAt ||= performance.now();
      },
    });
    return measured(startedAt, firstAt, samples[0]!.tokens.length);
  }

  async function runServed(server: BenchServer, seed: number): Promise<Measured> {
    const startedAt = performance.now();
    const body = {
      model: "bench",
      messages: [{ role: "user", content: `${seed} ${content}` }],
      max_tokens: maxTokens,
      ignore_eos: true,
      seed,
      stream: true,
      stream_options: { include_usage: true },
    };
    const { firstAt, tokens } = await read(await server.chat(body));
    return measured(startedAt, firstAt, tokens);
  }
}

async function reportMany(server: BenchServer, rate: number): Promise<void> {
  const startedAt = performance.now();
  const ends: number[] = [];
  let tokens = 0;
  await Promise.all(
    Array.from({ length: manyStreams }, async (_, seed) => {
      const body = {
        model: "bench",
        messages: [{ role: "user", content: `Story ${seed}` }],
        max_tokens: manyTokens,
        ignore_eos: true,
        seed,
        stream: true,
        stream_options: { include_usage: true },
      };
      const answer = await read(await server.chat(body));
      tokens += answer.tokens;
      ends.push(performance.now() - startedAt);
    }),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  const [loopDelay] = await server.metrics("tinker_event_loop_delay_p99_seconds");
  line(
    `${manyStreams} streams at once`,
    `${(tokens / seconds).toFixed(0)} tokens/s, ${(tokens / seconds / rate).toFixed(1)} times one stream; last after ${Math.max(...ends).toFixed(0)} ms`,
  );
  line("event loop delay meanwhile, p99", `${((loopDelay ?? NaN) * 1000).toFixed(0)} ms`);
}

interface Measured {
  readonly firstMs: number;
  readonly tokensPerSecond: number;
}

/** The rate is that behind the first token, so that prompts do not count. */
function measured(startedAt: number, firstAt: number, tokens: number): Measured {
  const seconds = (performance.now() - firstAt) / 1000;
  return { firstMs: firstAt - startedAt, tokensPerSecond: (tokens - 1) / seconds };
}

async function read(response: Response): Promise<{ firstAt: number; tokens: number }> {
  if (!response.ok) throw new Error(await response.text());
  const decoder = new TextDecoder();
  let firstAt = 0;
  let text = "";
  for await (const part of response.body ?? []) {
    text += decoder.decode(part as Uint8Array, { stream: true });
    // The role comes before the first token does.
    if (firstAt === 0 && /"content":"[^"]/.test(text)) firstAt = performance.now();
  }
  const usage = /"completion_tokens":(\d+)/.exec(text);
  return { firstAt, tokens: Number(usage?.[1]) };
}
