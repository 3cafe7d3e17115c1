// Prints how a GPU compares with the processor, to be pasted into an issue: `npm run bench:gpu -w packages/engine`.
import os from "node:os";
import { Engine, EngineError, parseModelConfig, type BaseModel } from "@tinker-ts/engine";
import { bestMs } from "./measure.js";

/** Layers of the width of toys, of small and of usable models; few of them, because all take the same time. */
const shapes = [
  { name: "64 wide, 2 layers", width: 64, layers: 2, vocabulary: 512, length: 16 },
  { name: "256 wide, 4 layers", width: 256, layers: 4, vocabulary: 512, length: 256 },
  { name: "1,024 wide, 4 layers", width: 1024, layers: 4, vocabulary: 32_000, length: 256 },
  { name: "1,024 wide, 2 layers", width: 1024, layers: 2, vocabulary: 152_000, length: 256 },
] as const;
type Shape = (typeof shapes)[number];
const [sequences, rank] = [4, 32];

/** Drivers that compute on the processor would take hours for what a GPU does in seconds. */
const mostStepMs = 60_000;

console.log(`- ${os.type()} ${os.release()} ${os.arch()}, Node ${process.version}`);
console.log(`- ${os.cpus()[0]?.model ?? "unknown processor"}, ${os.availableParallelism()} cores`);
console.log("- GPU and driver: (please say which; WebGPU does not tell)");
const gpu = await Engine.create({ device: "gpu" }).catch((error: unknown) => {
  if (!(error instanceof EngineError)) throw error;
  console.log(`- the GPU is **refused**: ${error.message}`);
});
if (gpu !== undefined) {
  printCheck(gpu);
  const cpu = await Engine.create({ device: "cpu" });
  console.log("\n| shape | what | processor | GPU | ratio |\n| --- | --- | ---: | ---: | ---: |");
  for (const [index, shape] of shapes.entries()) {
    const here = await measure(cpu, shape);
    const there = await measure(gpu, shape);
    for (const [row, { what, ms }] of here.entries()) {
      const gpuMs = there[row]?.ms ?? NaN;
      const times = `${ms.toFixed(1)} ms | ${gpuMs.toFixed(1)} ms | ${(ms / gpuMs).toPrecision(2)} x`;
      console.log(`| ${shape.name}, vocabulary ${shape.vocabulary} | ${what} | ${times} |`);
    }
    const next = shapes[index + 1];
    if (next !== undefined && ((there[0]?.ms ?? NaN) * workOf(next)) / workOf(shape) > mostStepMs) {
      console.log(
        "\nLarger shapes were left out: they would take this GPU more than a minute a step.",
      );
      break;
    }
  }
  await cpu.close();
  await gpu.close();
}

/** Products of a step, up to a factor. */
function workOf({ width, layers, vocabulary, length }: Shape): number {
  return length * width * (12 * width * layers + vocabulary);
}

function printCheck({ device: { check } }: Engine): void {
  const block = check?.promptBlock ?? null;
  console.log(`- prompts are read ${block === null ? "in long blocks" : `by ${block} tokens`}`);
  for (const { name, difference, deviceMs, processorMs } of check?.parts ?? []) {
    const times = `GPU ${deviceMs.toFixed(1)} ms, processor ${processorMs.toFixed(1)} ms`;
    console.log(`- check, ${name}: differs by ${difference.toExponential(1)}; ${times}`);
  }
}

/** What a step and tokens of one and of several samples take; the first of each is not timed. */
async function measure(engine: Engine, shape: Shape): Promise<{ what: string; ms: number }[]> {
  const { width, layers, vocabulary, length } = shape;
  const model = await engine.createModel(configOf(width, layers, vocabulary), { seed: 1 });
  const found = [
    { what: `step, ${sequences} x ${length} tokens`, ms: await stepMs(model, shape) },
    { what: "token of 1 sample", ms: await tokenMs(model, 1) },
    { what: "token of 8 samples", ms: await tokenMs(model, 8) },
  ];
  await model.unload();
  return found;
}

async function stepMs(model: BaseModel, { vocabulary, length }: Shape): Promise<number> {
  const adapter = await model.createAdapter({ rank });
  const tokens = Array.from({ length }, (_, index) => (index * 7) % vocabulary);
  const inputs = { target_tokens: { data: tokens, shape: [length] } };
  const data = Array.from({ length: sequences }, () => ({ tokens, inputs }));
  const step = async (): Promise<void> => {
    await adapter.forwardBackward(data, { lossFn: "cross_entropy" });
    await adapter.optimStep({ learningRate: 1e-4 });
  };
  await step();
  const ms = await bestMs(3000, step);
  await adapter.release();
  return ms;
}

async function tokenMs(model: BaseModel, numSamples: number): Promise<number> {
  const prompt = Array.from({ length: 16 }, (_, index) => index * 7);
  const sample = (maxTokens: number) => model.sample({ prompt, maxTokens, numSamples, seed: 1 });
  await sample(2);
  const first = await bestMs(500, () => sample(1));
  const more = await bestMs(2000, () => sample(33));
  return (more - first) / 32;
}

function configOf(width: number, layers: number, vocabulary: number) {
  const headDim = width >= 1024 ? 128 : 16;
  return parseModelConfig({
    architectures: ["Qwen3ForCausalLM"],
    model_type: "qwen3",
    vocab_size: vocabulary,
    hidden_size: width,
    intermediate_size: 3 * width,
    num_hidden_layers: layers,
    num_attention_heads: width >= 1024 ? width / 64 : width / headDim,
    num_key_value_heads: width >= 1024 ? width / 128 : width / (2 * headDim),
    head_dim: headDim,
    rms_norm_eps: 1e-6,
    max_position_embeddings: 1024,
    tie_word_embeddings: true,
  });
}
