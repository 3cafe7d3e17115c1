import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";
import { realModels } from "./support/real-models.js";

const run = promisify(execFile);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-local-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a program of a user in a process of its own, with `local:` as its server. */
async function program(source: string, flags: readonly string[] = []): Promise<string> {
  const file = path.join(folder, "program.mjs");
  writeFileSync(file, source);
  const env = {
    ...process.env,
    TINKER_BASE_URL: "local:",
    TINKER_API_KEY: "",
    TINKER_TS_DATA_DIR: path.join(folder, "data"),
    TMPDIR: folder,
  };
  const { stdout } = await run(process.execPath, [...flags, file], { env, timeout: 60_000 });
  return stdout.trim();
}

/** The compiled entry of a package, for programs outside of the repository. */
const entryOf = (name: string): string =>
  JSON.stringify(pathToFileURL(path.resolve(import.meta.dirname, `../../${name}/dist/index.js`)));
const sdk = entryOf("sdk");
const server = entryOf("server");

const model = JSON.stringify(realModels.qwen3);

it("trains in the process of a program that has no key, and leaves its checkpoints to the next", async () => {
  const saved = await program(`
    import { ServiceClient } from ${sdk};
    const service = new ServiceClient();
    const training = await service.createLoraTrainingClient({ baseModel: ${model}, rank: 4 });
    const { path } = await training.saveState("mine");
    console.log(path);
    await service.close();
  `);
  expect(saved).toMatch(/^tinker:\/\/.*\/weights\/mine$/);
  const rank = await program(`
    import { ServiceClient } from ${sdk};
    const service = new ServiceClient();
    const training = await service.createTrainingClientFromState(${JSON.stringify(saved)});
    console.log((await training.getInfo()).loraRank);
    await service.close();
  `);
  expect(rank).toBe("4");
  expect(readdirSync(folder)).toEqual(["data", "program.mjs"]);
});

it("lets a program end that does not close its client", async () => {
  const tokens = await program(`
    import { ServiceClient } from ${sdk};
    const sampling = await new ServiceClient().createSamplingClient({ baseModel: ${model} });
    const { sequences } = await sampling.sample({
      prompt: [1, 2, 3],
      samplingParams: { maxTokens: 4, temperature: 0 },
    });
    console.log(sequences[0].tokens.length);
  `);
  expect(tokens).toBe("4");
  // The next one is not told that something was lost.
  expect(
    await program(`
    import { createLocalHandler } from ${server};
    const logger = { debug() {}, info() {}, warn: console.log, error: console.log };
    await (await createLocalHandler({ logger })).close();
  `),
  ).toBe("");
});

it.each([
  { name: "flags of V8", flags: ["--max-old-space-size=2048", "--expose-gc"] },
  { name: "flags about the program alone", flags: ["--input-type=module", "--expose-gc"] },
])("computes and decodes in threads of a process with $name", async ({ flags }) => {
  const source = `
    import { createLocalHandler } from ${server};
    import { ServiceClient } from ${sdk};
    const local = await createLocalHandler({ logLevel: "silent" });
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ model: "nobody", prompt: "long ".repeat(20_000) });
    const asked = new Request("http://localhost/v1/completions", { method: "POST", headers, body });
    console.log((await local.fetch(asked)).status);
    await local.close();
    const service = new ServiceClient();
    const training = await service.createLoraTrainingClient({ baseModel: ${model}, rank: 4 });
    await training.optimStep();
    console.log("stepped");
    await service.close();
  `;
  const isEvaluated = flags.some((flag) => flag.startsWith("--input-type"));
  const told = await program(source, isEvaluated ? [...flags, "--eval", source] : flags);
  expect(told).toBe("404\nstepped");
});

it("says who uses the data directory when it is taken", async () => {
  const message = await program(`
    import { createLocalHandler } from ${server};
    const first = await createLocalHandler();
    const problem = await createLocalHandler().catch((error) => error.message);
    console.log(problem);
    await first.close();
  `);
  expect(message).toContain("is in use by process");
  expect(message).toContain("choose another data directory");
});

it("ends the sessions of the process before it", async () => {
  await program(`
    import { ServiceClient } from ${sdk};
    const service = new ServiceClient();
    await service.createLoraTrainingClient({ baseModel: ${model}, rank: 4 });
    process.exit(0);
  `);
  const state = await program(`
    import { ServiceClient } from ${sdk};
    const service = new ServiceClient();
    const rest = service.createRestClient();
    const { trainingRuns } = await rest.listTrainingRuns();
    console.log(trainingRuns.length, trainingRuns[0].corrupted);
    await service.close();
  `);
  expect(state).toBe("1 false");
});

it("offers the embedded model to a program that sets nothing up, offline and with its tokenizer", async () => {
  const told = await program(`
    import { ServiceClient } from ${sdk};
    process.env.HF_HUB_OFFLINE = "1";
    process.env.HF_HOME = ${JSON.stringify("/nowhere")};
    const service = new ServiceClient();
    const { supportedModels } = await service.getServerCapabilities();
    const training = await service.createLoraTrainingClient({ baseModel: "tinker-ts/sprout", rank: 4 });
    const tokenizer = await training.getTokenizer();
    const ids = tokenizer.encode("Hello!", { addSpecialTokens: false });
    console.log(JSON.stringify({ supportedModels, text: tokenizer.decode(ids) }));
    await service.close();
  `);
  expect(JSON.parse(told)).toEqual({
    supportedModels: [{ modelName: "tinker-ts/sprout", maxContextLength: 1024 }],
    text: "Hello!",
  });
});

it("ends a stream when its reader stops, although its request has been collected", async () => {
  const told = await program(`
    import { setFlagsFromString } from "node:v8";
    import { runInNewContext } from "node:vm";
    import { createLocalHandler } from ${server};
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc");
    const local = await createLocalHandler({ logLevel: "silent" });
    const leaving = new AbortController();
    const open = async () => {
      const address = "http://localhost/studio/api/events?topics=runs";
      const answer = await local.fetch(new Request(address, { signal: leaving.signal }));
      return answer.body.pipeTo(new WritableStream());
    };
    const reading = open();
    for (let round = 0; round < 5; round++) {
      await new Promise((resolve) => setTimeout(resolve));
      collect();
    }
    const waiting = setTimeout(() => process.exit(1), 30_000);
    leaving.abort();
    await reading;
    clearTimeout(waiting);
    console.log("ended");
    await local.close();
  `);
  expect(told).toBe("ended");
});
