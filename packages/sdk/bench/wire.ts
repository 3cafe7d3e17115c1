// Speed and memory of the binary codec and the cost of importing the package.
//   npm run bench -w packages/sdk
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Datum, TensorData } from "tinker-ts";
import { decodeProto, encodeProto } from "tinker-ts/wire";

const datums = 1024;
const tokensPerDatum = 2048;
const megabyte = 1e6;

// Without collections in between, what is allocated is the peak.
setFlagsFromString("--expose-gc");
if (process.argv[2] === "memory") reportMemory();
else {
  reportThroughput();
  inChild("memory");
}

function makeRequest() {
  const tokens = Int32Array.from(
    { length: tokensPerDatum },
    (_, index) => (index * 7919) % 150_000,
  );
  const weights = new Float32Array(tokensPerDatum).fill(1);
  const data = Array.from(
    { length: datums },
    () => new Datum({ modelInput: tokens, lossFnInputs: { target_tokens: tokens, weights } }),
  );
  return {
    modelId: "bench:train:0",
    seqId: 1,
    forwardOnly: false,
    forwardBackwardInput: { data, lossFn: "cross_entropy" as const, lossFnConfig: null },
  };
}

function makeResult(): Uint8Array {
  const logprobs = new TensorData({ data: new Float32Array(tokensPerDatum).fill(-1.5) });
  return encodeProto("ForwardBackwardOutput", {
    lossFnOutputType: "TorchLossReturn",
    lossFnOutputs: Array.from({ length: datums }, () => ({ logprobs })),
    metrics: { "loss:sum": 1 },
  });
}

function reportThroughput(): void {
  const request = makeRequest();
  const body = encodeProto("ForwardBackwardRequest", request);
  const result = makeResult();
  const copy = rate(body.length, () => Uint8Array.from(body));
  console.log(`${datums} data x ${tokensPerDatum} tokens, one core`);
  row("plain buffer copy", body.length, copy, copy);
  row(
    "encode request",
    body.length,
    rate(body.length, () => encodeProto("ForwardBackwardRequest", request)),
    copy,
  );
  row(
    "decode request",
    body.length,
    rate(body.length, () => decodeProto("ForwardBackwardRequest", body)),
    copy,
  );
  row(
    "decode result",
    result.length,
    rate(result.length, () => decodeProto("ForwardBackwardOutput", result)),
    copy,
  );
}

/** Bytes per second, the median of several runs. */
function rate(bytes: number, action: () => unknown): number {
  const seconds = Array.from({ length: 15 }, () => {
    const start = performance.now();
    action();
    return (performance.now() - start) / 1000;
  });
  return bytes / median(seconds);
}

function row(label: string, bytes: number, perSecond: number, copy: number): void {
  const size = `${(bytes / megabyte).toFixed(1)} MB`.padStart(9);
  const speed = `${Math.round(perSecond / megabyte)} MB/s`.padStart(11);
  console.log(`  ${label.padEnd(18)}${size}${speed}   ${(perSecond / copy).toFixed(2)} x copy`);
}

/** Memory that one encode and one decode leave and use, against the size of the body. */
function reportMemory(): void {
  const request = makeRequest();
  const result = makeResult();
  measureMemory("encode request", () => {
    const body = encodeProto("ForwardBackwardRequest", request);
    return { bytes: body.length, kept: body };
  });
  measureMemory("decode result", () => ({
    bytes: result.length,
    kept: decodeProto("ForwardBackwardOutput", result),
  }));
}

function measureMemory(label: string, action: () => { bytes: number; kept: unknown }): void {
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
  const before = allocated();
  const { bytes, kept } = action();
  const extra = allocated() - before;
  console.log(
    `  extra memory, ${label}: ${(extra / megabyte).toFixed(1)} MB = ${(extra / bytes).toFixed(2)} x the body`,
  );
  if (kept === undefined) throw new Error("nothing was produced");
}

function allocated(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

function inChild(mode: string): void {
  const script = fileURLToPath(import.meta.url);
  spawnSync(process.execPath, [...process.execArgv, script, mode], { stdio: "inherit" });
}
