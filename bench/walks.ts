// How far one warm call walks: files and functions of this repository that run in the client, in the server and in their worker
// threads. Client and server are two processes. `npm run bench:walks` prints the counts, `-- --files` also the files.
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { getRenderer, recommendedRenderer } from "@tinker-ts/cookbook/renderers";
import { problemGroup, train } from "@tinker-ts/cookbook/rl";
import { ServiceClient } from "tinker-ts";
import { RunLog } from "tinker-ts/run-log";
import { begin, end, type Executed } from "./coverage-probe.mjs";

const model = "tinker-ts/sprout";
const apiKey = "tml-walk";
const warmUps = 5;
/** Heartbeats and sweeps run beside some calls; the shortest of several walks has none of them. */
const measured = 5;
const goals: Readonly<Record<string, { files: number; functions?: number }>> = {
  forwardBackward: { files: 90, functions: 450 },
  "streamed chat": { files: 65 },
  "RL step": { files: 170 },
  "logged metric": { files: 45 },
};
const showsFiles = process.argv.includes("--files");

const folder = await mkdtemp(path.join(tmpdir(), "tinker-ts-walks-"));
const probe = path.join(import.meta.dirname, "coverage-probe.mjs");
const serve = createRequire(import.meta.url).resolve("../packages/server/test/support/serve.mjs");
const server = fork(
  serve,
  [
    JSON.stringify({
      port: 0,
      dataDir: path.join(folder, "data"),
      apiKeys: [apiKey],
      logLevel: "warn",
    }),
  ],
  { execArgv: ["--import", probe], stdio: ["ignore", "pipe", "inherit", "ipc"] },
);
const [baseUrl] = (await once(createInterface(server.stdout!), "line")) as [string];
const logger = { debug() {}, info() {}, warn() {}, error() {} };
const service = new ServiceClient({ baseUrl, apiKey, telemetry: false, logger });
try {
  await walkForwardBackward();
  await walkChat();
  await walkMetric();
  await walkRlStep();
} finally {
  await service.close();
  server.kill();
  await once(server, "exit");
  await rm(folder, { recursive: true, force: true });
}

async function walkForwardBackward(): Promise<void> {
  const training = await service.createLoraTrainingClient({ baseModel: model, rank: 8 });
  const tokens = Int32Array.from({ length: 32 }, (_, i) => (i * 7) % 256);
  const weights = new Float32Array(32).fill(1);
  const datum = { modelInput: tokens, lossFnInputs: { target_tokens: tokens, weights } };
  const call = async (): Promise<unknown> => training.forwardBackward([datum], "cross_entropy");
  await walk("forwardBackward", call);
}

async function walkChat(): Promise<void> {
  const call = async (): Promise<void> => {
    const response = await fetch(`${baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { "x-api-key": apiKey, "content-type": "application/json" },
      body: JSON.stringify({
        model,
        stream: true,
        max_tokens: 16,
        messages: [{ role: "user", content: "Tell me something about the weather." }],
      }),
    });
    await response.text();
  };
  await walk("streamed chat", call);
}

async function walkRlStep(): Promise<void> {
  const sampling = await service.createSamplingClient({ baseModel: model });
  const tokenizer = await sampling.getTokenizer();
  const renderer = await getRenderer(recommendedRenderer(model, tokenizer), tokenizer);
  const group = () =>
    problemGroup(
      {
        prompt: "Tell me something about the weather.",
        grade: (answer) => answer.length % 2 === 0,
      },
      { renderer, size: 4 },
    );
  await train({
    service,
    model,
    folder: path.join(folder, "run"),
    dataset: {
      length: warmUps + 2,
      // A batch is made at the beginning of its step.
      async batch(step) {
        if (step === warmUps) await beginBoth();
        if (step === warmUps + 1) report("RL step", await endBoth());
        return [group(), group()];
      },
    },
    maxTokens: 12,
    learningRate: 1e-4,
    saveEvery: 0,
  });
}

async function walkMetric(): Promise<void> {
  const run = await RunLog.open({ service, name: "walk" });
  let step = 0;
  await walk("logged metric", async () => {
    run.log({ loss: 1 / (step + 1) }, { step });
    step++;
    // Lines are sent 250 ms after they are logged; the server sweeps every second.
    await setTimeout(450);
  });
  await run.close();
}

/** Reports the shortest of several warm calls. */
async function walk(name: string, call: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < warmUps; i++) await call();
  let shortest: Executed | undefined;
  for (let i = 0; i < measured; i++) {
    await beginBoth();
    await call();
    const executed = await endBoth();
    const length = Object.keys(executed).length;
    if (!shortest || length < Object.keys(shortest).length) shortest = executed;
  }
  report(name, shortest!);
}

async function beginBoth(): Promise<void> {
  await ask("begin");
  await begin();
}

async function endBoth(): Promise<Executed> {
  const own: Executed = await end();
  const { executed } = (await ask("end")) as { executed: Executed };
  return { ...own, ...executed };
}

async function ask(message: "begin" | "end"): Promise<unknown> {
  const answered = once(server, "message");
  server.send(message);
  const [answer] = (await answered) as [unknown];
  return answer;
}

function report(name: string, executed: Executed): void {
  const functions = Object.values(executed);
  const files = [...new Set(functions.map(({ file }) => file))].toSorted();
  const goal = goals[name]!;
  const functionGoal = goal.functions ? ` (goal ${goal.functions})` : "";
  console.log(
    `${name}: ${files.length} files (goal ${goal.files}), ${functions.length} functions${functionGoal}; ` +
      packagesOf(files)
        .map((part) => {
          const isOwn = ({ file }: { file: string }): boolean =>
            file.startsWith(`packages/${part}/`);
          const ownFiles = files.filter((file) => isOwn({ file })).length;
          return `${part} ${ownFiles} files, ${functions.filter(isOwn).length} functions`;
        })
        .join("; "),
  );
  if (!showsFiles) return;
  for (const file of files) {
    const names = functions.filter((one) => one.file === file).map((one) => one.name || "-");
    console.log(`  ${file}: ${names.join(" ")}`);
  }
}

function packagesOf(files: readonly string[]): string[] {
  return [...new Set(files.map((file) => file.split("/")[1]!))];
}
