// Samples with llama.cpp, a measurement for every line on standard input: "8x12" answers with the milliseconds of a token
// of each of 8 sequences, the mean of 12. Started by llama.ts with node-llama-cpp's entry point and a model's file.
import os from "node:os";
import { createInterface } from "node:readline";

const [entry = "", modelPath = ""] = process.argv.slice(2);
const { getLlama, LlamaLogLevel } = await import(entry);
// Left to itself it takes more threads than a machine of two cores has, and they wait for each other.
const threads = os.availableParallelism();
const llama = await getLlama({ build: "never", gpu: false, logLevel: LlamaLogLevel.error });
const model = await llama.loadModel({ modelPath });
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const [count = 1, length = 1] = line.split("x").map(Number);
  const context = await model.createContext({
    sequences: count,
    contextSize: 64,
    batchSize: 512,
    threads: { ideal: threads, min: threads },
  });
  const starts = [];
  const ends = [];
  const sample = async (sequence) => {
    let tokens = 0;
    for await (const _ of sequence.evaluate([1, 2, 3, 4], { temperature: 1 })) {
      if (tokens === 0) starts.push(performance.now());
      if (tokens++ === length) break;
    }
    ends.push(performance.now());
  };
  const sequences = Array.from({ length: count }, () => context.getSequence());
  await Promise.all(sequences.map(sample));
  console.log((Math.max(...ends) - Math.min(...starts)) / length);
  await context.dispose();
}
await llama.dispose();
