import { Engine } from "@tinker-ts/engine";
import { loadTokenizer } from "@tinker-ts/hub";
import type { BenchModel } from "./bench-model.js";
import { withServer } from "./bench-server.js";
import { line, median, undisturbed } from "./measure.js";

const firstTokenLimitMs = 5;
const leastShare = 0.9;
const rounds = 30;
const maxTokens = 200;
const manyStreams = 500;
const manyTokens = 16;

/**
 * What streams of chat completions cost on top of the engine: the same prompt by the engine alone and
 * through the server, turn by turn, with one thread each.
 */
export async function reportOpenAi(model: BenchModel): Promise<void> {
  const tokenizer = await loadTokenizer(model.folder);
  const content = "The cat sat on the mat and looked at the garden. ".repeat(12);
  const rendered = await tokenizer.encodeChat([{ role: "user", content }], {
    addGenerationPrompt: true,
  });
  const prompt = rendered.tokens;
  const engine = await Engine.create({ threads: 1 });
  const base = await engine.loadModel(model.folder);
  await withServer(model, { threads: 1, limits: { maxStreams: 64 } }, async (server) => {
    const alone = { first: [] as number[], rate: [] as number[] };
    const served = { first: [] as number[], rate: [] as number[] };
    for (let round = 0; round < rounds + 5; round++) {
      const measures = [
        [alone, await runAlone(round)],
        [served, await runServed(round)],
      ] as const;
      // The first rounds compile graphs and open connections.
      if (round < 5) continue;
      for (const [kept, { firstMs, tokensPerSecond }] of measures) {
        kept.first.push(firstMs);
        kept.rate.push(tokensPerSecond);
      }
    }
    const addedMs = undisturbed(served.first) - undisturbed(alone.first);
    line(
      "first token, added",
      `${addedMs.toFixed(1)} ms to ${undisturbed(alone.first).toFixed(1)} ms`,
      {
        of: firstTokenLimitMs,
        is: addedMs,
      },
    );
    const [ours, theirs] = [median(served.rate), median(alone.rate)];
    const share = ours / theirs;
    line(
      "tokens/s of one stream",
      `${ours.toFixed(0)} of the engine's ${theirs.toFixed(0)}: ${(share * 100).toFixed(0)} %, at least ${leastShare * 100} %`,
    );
    await reportMany(theirs);

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

    async function runServed(seed: number): Promise<Measured> {
      const startedAt = performance.now();
      const body = {
        model: "bench",
        messages: [{ role: "user", content: `${seed} ${content}` }],
        max_tokens: maxTokens,
        ignore_eos: true,
        seed,
        stream: true,
      };
      const { firstAt, chunks } = await read(await server.chat(body));
      return measured(startedAt, firstAt, chunks);
    }

    async function reportMany(rate: number): Promise<void> {
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
  });
  await engine.close();
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

async function read(
  response: Response,
): Promise<{ firstAt: number; chunks: number; tokens: number }> {
  if (!response.ok) throw new Error(await response.text());
  const decoder = new TextDecoder();
  let firstAt = 0;
  let text = "";
  for await (const part of response.body ?? []) {
    firstAt ||= performance.now();
    text += decoder.decode(part as Uint8Array, { stream: true });
  }
  const usage = /"completion_tokens":(\d+)/.exec(text);
  return {
    firstAt,
    chunks: text.split('"finish_reason":null').length - 2,
    tokens: Number(usage?.[1]),
  };
}
