// What a streamed token costs the client on top of the bare reading of its line.
//   npm run bench -w packages/sdk
import { Worker } from "node:worker_threads";
import { ServiceClient } from "tinker-ts";
import { Agent, request } from "undici";

const tokenCount = 20_000;
const rounds = 7;

/** Answers streams in a thread of its own, so that its work is not counted. */
const script = `
const { parentPort } = require("node:worker_threads");
const line = (token) => JSON.stringify({ index: 0, token, logprob: -1.5 }) + "\\n";
const final = JSON.stringify({ type: "sample", sequences: [{ stop_reason: "length", tokens: [1], logprobs: [-1.5] }] }) + "\\n";
const answers = { create_session: { session_id: "s" }, create_sampling_session: { sampling_session_id: "x" } };
require("node:http").createServer((request, response) => {
  request.resume();
  const endpoint = request.url.split("/").at(-1);
  if (endpoint !== "stream_sample") return response.end(JSON.stringify(answers[endpoint] ?? {}));
  let token = 0;
  const write = () => {
    while (token < ${tokenCount}) if (!response.write(line(token++ % 50000))) return response.once("drain", write);
    response.end(final);
  };
  write();
}).listen(0, "127.0.0.1", function () { parentPort.postMessage(this.address().port); });
`;

const worker = new Worker(script, { eval: true });
const port = await new Promise<number>((resolve) => void worker.once("message", resolve));
const url = `http://127.0.0.1:${port}`;
const dispatcher = new Agent();
const service = new ServiceClient({ baseUrl: url, apiKey: "tml-bench", telemetry: false });
const sampling = await service.createSamplingClient({ baseModel: "bench" });

const bare = async (): Promise<number> => {
  const { body } = await request(`${url}/api/v1/stream_sample`, { method: "POST", dispatcher });
  let rest = "";
  let count = 0;
  for await (const part of body.setEncoding("utf8") as AsyncIterable<string>) {
    const lines = (rest + part).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if ("token" in (JSON.parse(line) as object)) count++;
  }
  return count;
};
const sdk = async (): Promise<number> => {
  let count = 0;
  for await (const _ of sampling.stream({ prompt: [1], tokenizer: null })) count++;
  return count;
};

const costs = { bare: [] as number[], sdk: [] as number[] };
for (let round = 0; round < rounds; round++) {
  costs.bare.push(await measure(bare));
  costs.sdk.push(await measure(sdk));
}
const [bareMs, sdkMs] = [median(costs.bare), median(costs.sdk)];
console.log(`${tokenCount} tokens in a stream, median of ${rounds} rounds, side by side`);
console.log(`  bare lines           ${bareMs.toFixed(4)} ms of the thread a token`);
console.log(
  `  sampling.stream()    ${sdkMs.toFixed(4)} ms of the thread a token, ${(sdkMs - bareMs).toFixed(4)} ms more (${(sdkMs / bareMs).toFixed(2)} x)`,
);
await service.close();
await dispatcher.close();
await worker.terminate();

/** Busy time of this thread a token; on a machine that is shared it is more than the CPU it took. */
async function measure(read: () => Promise<number>): Promise<number> {
  const before = threadCpuMs();
  const count = await read();
  if (count !== tokenCount) throw new Error(`got ${count} tokens`);
  return (threadCpuMs() - before) / count;
}

/** The server's thread is part of this process; only this thread's loop is counted. */
function threadCpuMs(): number {
  return performance.eventLoopUtilization().active;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
