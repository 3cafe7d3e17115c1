// Prints how a GPU compares with the processor, to be pasted into an issue: `npm run bench:gpu -w packages/engine`.
import os from "node:os";
import { Engine, EngineError, parseModelConfig } from "@tinker-ts/engine";
import { bestMs } from "./measure.js";

/** Layers of the width of small and of usable models; few of them, because all take the same time. */
const shapes = [
  { name: "256 wide, 4 layers", width: 256, layers: 4, vocabulary: 512 },
  { name: "1,024 wide, 4 layers", width: 1024, layers: 4, vocabulary: 32_000 },
  { name: "1,024 wide, 2 layers, vocabulary 152,000", width: 1024, layers: 2, vocabulary: 152_000 },
] as const;
const [sequences, length, rank] = [4, 256, 32];

console.log(`- ${os.type()} ${os.release()} ${os.arch()}, Node ${process.version}`);
console.log(`- ${os.cpus()[0]?.model ?? "unknown processor"}, ${os.availableParallelism()} cores`);
const cpu = await measure("cpu");
const gpu = await measure("gpu").catch((error: unknown) => {
  if (!(error instanceof EngineError)) throw error;
  console.log(`- GPU: **refused**: ${error.message}`);
  return undefined;
});
if (gpu !== undefined) {
  console.log("\n| shape | | processor | GPU | ratio |\n| --- | --- | --- | --- | --- |");
  for (const [index, { shape, what, ms }] of cpu.entries()) {
    const there = gpu[index]?.ms ?? NaN;
    const cells = [shape, what, `${ms.toFixed(1)} ms`, `${there.toFixed(1)} ms`];
    console.log(`| ${cells.join(" | ")} | ${(ms / there).toFixed(2)} x |`);
  }
}

async function measure(device: "cpu" | "gpu") {
  const engine = await Engine.create({ device });
  for (const part of engine.device.check?.parts ?? []) {
    const { name, difference, deviceMs, processorMs } = part;
    console.log(
      `- check, ${name}: differs by ${difference.toExponential(1)}; ` +
        `GPU ${deviceMs.toFixed(1)} ms, processor ${processorMs.toFixed(1)} ms`,
    );
  }
  const found: { shape: string; what: string; ms: number }[] = [];
  for (const { name: shape, width, layers, vocabulary } of shapes) {
    const model = await engine.createModel(configOf(width, layers, vocabulary), { seed: 1 });
    const adapter = await model.createAdapter({ rank });
    const tokens = Array.from({ length }, (_, index) => (index * 7) % vocabulary);
    const inputs = { target_tokens: { data: tokens, shape: [length] } };
    const data = Array.from({ length: sequences }, () => ({ tokens, inputs }));
    const step = async (): Promise<void> => {
      await adapter.forwardBackward(data, { lossFn: "cross_entropy" });
      await adapter.optimStep({ learningRate: 1e-4 });
    };
    await step();
    found.push({ shape, what: "step, 4 x 256 tokens", ms: await bestMs(3000, step) });
    for (const numSamples of [1, 8]) {
      const sample = (maxTokens: number) =>
        model.sample({ prompt: tokens.slice(0, 16), maxTokens, numSamples, seed: 1 });
      await sample(2);
      const first = await bestMs(500, () => sample(1));
      const more = await bestMs(2000, () => sample(33));
      found.push({ shape, what: `a token for ${numSamples}`, ms: (more - first) / 32 });
    }
    await model.unload();
  }
  await engine.close();
  return found;
}

function configOf(width: number, layers: number, vocabulary: number) {
  return parseModelConfig({
    architectures: ["Qwen3ForCausalLM"],
    model_type: "qwen3",
    vocab_size: vocabulary,
    hidden_size: width,
    intermediate_size: 3 * width,
    num_hidden_layers: layers,
    num_attention_heads: width / 64,
    num_key_value_heads: width / 128,
    head_dim: width >= 1024 ? 128 : 64,
    rms_norm_eps: 1e-6,
    max_position_embeddings: 1024,
    tie_word_embeddings: true,
  });
}
