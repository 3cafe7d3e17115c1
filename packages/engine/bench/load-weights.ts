// How fast weights load: a tensor of 250 million elements in each stored type, read and widened to
// 32-bit floats, beside a plain read of the same file and a plain copy of as many floats. The file
// is in the page cache, so this is about memory and processor, not about the disk.
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { SafetensorsFile, writeSafetensors, type StoredDtype } from "../src/index.js";

const elements = 250_000_000;
const rounds = 3;

const folder = await mkdtemp(path.join(tmpdir(), "tinker-ts-bench-"));
try {
  const values = new Float32Array(elements);
  for (let i = 0; i < elements; i++) values[i] = ((i * 7919) % 1000) / 500 - 1;
  const target = new Float32Array(elements).fill(1);
  const copyMs = await best(async () => target.set(values));
  console.log(
    `copy of ${megabytes(target.byteLength)} of floats: ${rate(target.byteLength, copyMs)}`,
  );
  for (const dtype of ["BF16", "F16", "F32"] as const) {
    await measure(dtype, values, target);
  }
} finally {
  await rm(folder, { recursive: true });
}

async function measure(
  dtype: StoredDtype,
  values: Float32Array,
  target: Float32Array,
): Promise<void> {
  const file = path.join(folder, `${dtype}.safetensors`);
  const writeStart = performance.now();
  await writeSafetensors(file, [{ name: "weights", dtype, shape: [elements], data: values }]);
  const writeMs = performance.now() - writeStart;
  const storedBytes = elements * (dtype === "F32" ? 4 : 2);
  const plainMs = await best(() =>
    readPlainly(file, new Uint8Array(target.buffer, 0, storedBytes)),
  );
  const source = await SafetensorsFile.open(file);
  const loadMs = await best(() => source.readFloats("weights", target));
  await source.close();
  await rm(file);
  console.log(
    `${dtype}, ${megabytes(storedBytes)}: load ${rate(storedBytes, loadMs)}, ` +
      `plain read ${rate(storedBytes, plainMs)}, ratio ${(plainMs / loadMs).toFixed(2)}; ` +
      `write and sync ${rate(storedBytes, writeMs)}`,
  );
}

async function readPlainly(file: string, target: Uint8Array): Promise<void> {
  const handle = await open(file);
  for (let done = 0; done < target.length;) {
    const { bytesRead } = await handle.read(target, done, Math.min(1 << 22, target.length - done));
    done += bytesRead;
  }
  await handle.close();
}

async function best(action: () => Promise<unknown>): Promise<number> {
  let bestMs = Infinity;
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    await action();
    bestMs = Math.min(bestMs, performance.now() - start);
  }
  return bestMs;
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}

function rate(bytes: number, ms: number): string {
  return `${Math.round(bytes / 1e3 / ms)} MB/s`;
}
