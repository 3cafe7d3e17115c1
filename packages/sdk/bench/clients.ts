// What the clients cost on top of the bare HTTP exchange.
//   npm run bench -w packages/sdk
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Datum, ServiceClient } from "tinker-ts";
import { Agent, request } from "undici";

const rounds = 5;
const prompt = Int32Array.from({ length: 64 }, (_, index) => index * 31);

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

await reportThroughput(20_000, 2_000);
await reportMemory(10_000);
await reportSubmission(5_000_000);

/** Calls per second and CPU per call, against a loop that makes the same two requests by hand. */
async function reportThroughput(total: number, inFlight: number): Promise<void> {
  const { url, stop } = await startServer(0);
  const bare = bareCall(url);
  const service = new ServiceClient({ baseUrl: url, apiKey: "tml-bench", telemetry: false });
  const sampling = await service.createSamplingClient({ baseModel: "bench" });
  const sdk = () => sampling.sample({ prompt, samplingParams: { maxTokens: 32 } });
  const results = { bare: [] as Cost[], sdk: [] as Cost[] };
  // Side by side, so that a disturbance hits both.
  for (let round = 0; round < rounds; round++) {
    results.bare.push(await measure(bare.call, total, inFlight));
    results.sdk.push(await measure(sdk, total, inFlight));
  }
  await service.close();
  await bare.close();
  stop();
  const bareCpu = median(results.bare.map(({ cpuMs }) => cpuMs));
  const sdkCpu = median(results.sdk.map(({ cpuMs }) => cpuMs));
  const bareRate = median(results.bare.map(({ perSecond }) => perSecond));
  const sdkRate = median(results.sdk.map(({ perSecond }) => perSecond));
  console.log(`${total} samples, ${inFlight} in flight, median of ${rounds} rounds`);
  console.log(
    `  bare undici request  ${bareCpu.toFixed(3)} ms CPU  ${Math.round(bareRate)} calls/s`,
  );
  console.log(
    `  SamplingClient       ${sdkCpu.toFixed(3)} ms CPU  ${Math.round(sdkRate)} calls/s   ${(sdkCpu / bareCpu).toFixed(2)} x the CPU, ${(sdkRate / bareRate).toFixed(2)} x the rate`,
  );
}

interface Cost {
  readonly cpuMs: number;
  readonly perSecond: number;
}

async function measure(
  call: () => PromiseLike<unknown>,
  total: number,
  inFlight: number,
): Promise<Cost> {
  collect();
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  let left = total;
  const worker = async (): Promise<void> => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  const { user, system } = process.cpuUsage(cpu);
  const seconds = (performance.now() - startedAt) / 1000;
  return { cpuMs: (user + system) / 1000 / total, perSecond: total / seconds };
}

function bareCall(url: string) {
  const dispatcher = new Agent({ connections: 64 });
  const headers = { "content-type": "application/json", "x-api-key": "tml-bench" };
  const post = (endpoint: string, body: unknown) =>
    request(`${url}/api/v1/${endpoint}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      dispatcher,
    });
  const call = async (): Promise<unknown> => {
    const accepted = await post("asample", {
      num_samples: 1,
      prompt: { chunks: [{ tokens: Array.from(prompt), type: "encoded_text" }] },
      sampling_params: { max_tokens: 32, temperature: 1, top_k: -1, top_p: 1 },
      sampling_session_id: "bench:sample:0",
      seq_id: 0,
      type: "sample",
    });
    const { request_id } = (await accepted.body.json()) as { request_id: string };
    const result = await post("retrieve_future", { request_id, allow_metadata_only: true });
    return result.body.arrayBuffer();
  };
  return { call, close: () => dispatcher.close() };
}

/** Memory that a call holds while the server keeps its poll open. */
async function reportMemory(inFlight: number): Promise<void> {
  const { url, stop } = await startServer(20_000);
  const service = new ServiceClient({ baseUrl: url, apiKey: "tml-bench", telemetry: false });
  const sampling = await service.createSamplingClient({ baseModel: "bench" });
  collect();
  const before = process.memoryUsage();
  const startedAt = performance.now();
  const futures = Array.from({ length: inFlight }, () =>
    sampling.sample({ prompt, samplingParams: { maxTokens: 32 } }),
  );
  const accepted = () => futures.filter(({ state }) => state === "running").length;
  while (accepted() < inFlight) await new Promise((resolve) => setTimeout(resolve, 100));
  const acceptedMs = performance.now() - startedAt;
  collect();
  const during = process.memoryUsage();
  await Promise.all(futures);
  const seconds = (performance.now() - startedAt) / 1000;
  await service.close();
  stop();
  const heap = during.heapUsed + during.external - before.heapUsed - before.external;
  const resident = during.rss - before.rss;
  console.log(
    `${inFlight} samples in flight: all accepted after ${(acceptedMs / 1000).toFixed(1)} s, all done after ${seconds.toFixed(1)} s (polls held 20 s)`,
  );
  console.log(
    `  memory per call in flight: ${(heap / inFlight / 1000).toFixed(1)} kB heap and buffers, ${(resident / inFlight / 1000).toFixed(1)} kB resident`,
  );
}

/** How long a large pass takes until it is accepted, and how long it holds other work up. */
async function reportSubmission(sizeBytes: number): Promise<void> {
  const { url, stop } = await startServer(0);
  for (const dialect of ["proto", "json"] as const) {
    const service = new ServiceClient({
      baseUrl: url,
      apiKey: "tml-bench",
      telemetry: false,
      dialect,
    });
    const training = await service.createLoraTrainingClient({ baseModel: "bench" });
    const tokens = Int32Array.from({ length: 1024 }, (_, index) => index * 31);
    const datum = new Datum({
      modelInput: tokens,
      lossFnInputs: { target_tokens: tokens, weights: new Float32Array(1024).fill(1) },
    });
    const data = Array.from({ length: Math.floor(sizeBytes / (1024 * 16)) }, () => datum);
    await training.forwardBackward(data, "cross_entropy");
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const latencies: number[] = [];
    for (let round = 0; round < 20; round++) {
      const startedAt = performance.now();
      const future = training.forwardBackward(data, "cross_entropy");
      future.onState(({ state }) => {
        if (state === "running") latencies.push(performance.now() - startedAt);
      });
      await future;
    }
    delay.disable();
    await service.close();
    console.log(
      `forwardBackward of ${(sizeBytes / 1e6).toFixed(0)} MB as ${dialect}: accepted after ${median(latencies).toFixed(0)} ms (median of 20); event loop delay p99 ${(delay.percentile(99) / 1e6).toFixed(1)} ms, longest ${(delay.max / 1e6).toFixed(1)} ms`,
    );
  }
  stop();
}

async function startServer(holdMs: number): Promise<{ url: string; stop: () => void }> {
  const script = fileURLToPath(new URL("answering-server.ts", import.meta.url));
  const server: ChildProcess = spawn(
    process.execPath,
    [...process.execArgv, script, String(holdMs)],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const [port] = (await once(server.stdout!, "data")) as [Buffer];
  return { url: `http://127.0.0.1:${Number(port)}`, stop: () => server.kill() };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
