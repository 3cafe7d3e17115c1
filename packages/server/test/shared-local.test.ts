import { execFile } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { realModels } from "./support/real-models.js";

const run = promisify(execFile);
const sdk = JSON.stringify(
  pathToFileURL(path.resolve(import.meta.dirname, "../../sdk/dist/index.js")),
);
const model = JSON.stringify(realModels.qwen3);

let folder: string;
let dataDir: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-shared-local-"));
  dataDir = path.join(folder, "data");
});
afterEach(() => {
  const pid = serverPid();
  if (pid !== undefined) process.kill(pid, "SIGKILL");
  rmSync(folder, { recursive: true, force: true, maxRetries: 50 });
});

/** The process of the shared server. */
function serverPid(): number | undefined {
  try {
    const note = readFileSync(path.join(dataDir, "holder.json"), "utf8");
    return (JSON.parse(note) as { pid: number }).pid;
  } catch {
    return undefined;
  }
}

/** Runs a program of a user in a process of its own. */
async function program(source: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const file = path.join(mkdtempSync(path.join(folder, "program-")), "program.mjs");
  writeFileSync(file, `import { ServiceClient } from ${sdk};\n${source}`);
  const { stdout } = await run(process.execPath, [file], {
    env: {
      ...process.env,
      TINKER_BASE_URL: "local:",
      TINKER_API_KEY: "",
      TINKER_TS_IN_PROCESS: "",
      TINKER_TS_DATA_DIR: dataDir,
      TMPDIR: folder,
      ...env,
    },
    timeout: 120_000,
  });
  return stdout.trim();
}

/** Trains some steps and prints the losses. */
const training = (name: string, steps: number): string => `
  const service = new ServiceClient();
  const training = await service.createLoraTrainingClient({ baseModel: ${model}, rank: 4, seed: 7 });
  const data = [{ modelInput: [1, 2, 3, 4], lossFnInputs: { target_tokens: [2, 3, 4, 5], weights: [1, 1, 1, 1] } }];
  const losses = [];
  for (let step = 0; step < ${steps}; step++) {
    const pass = await training.forwardBackward(data, "cross_entropy");
    await training.optimStep({ learningRate: 0.01 });
    losses.push(pass.metrics["loss:sum"]);
  }
  const { path } = await training.saveState(${JSON.stringify(name)});
  console.log(JSON.stringify({ losses, path }));
  await service.close();
`;

interface Trained {
  readonly losses: readonly number[];
  readonly path: string;
}

it("several programs train at the same time, each as it would alone, and see each other's runs", async () => {
  const alone = JSON.parse(await program(training("alone", 4))) as Trained;
  const together = await Promise.all(
    ["one", "two", "three"].map((name) => program(training(name, 4))),
  );
  for (const text of together) expect((JSON.parse(text) as Trained).losses).toEqual(alone.losses);
  const listed = await program(`
    const service = new ServiceClient();
    const { trainingRuns } = await service.createRestClient().listTrainingRuns();
    console.log(trainingRuns.length);
    await service.close();
  `);
  expect(listed).toBe("4");
  expect(readdirSync(folder).filter((name) => name.startsWith("data"))).toEqual(["data"]);
});

it("a program goes on when the server is killed, with the results of a calm run", async () => {
  const calm = JSON.parse(await program(training("calm", 30))) as Trained;
  const first = serverPid();
  const disturbed = program(training("disturbed", 30));
  const killed = new Set<number>();
  const over = disturbed.then(
    () => "over",
    () => "over",
  );
  while (killed.size < 2 && (await Promise.race([over, delay(150)])) !== "over") {
    const pid = serverPid();
    if (pid === undefined || killed.has(pid)) continue;
    killed.add(pid);
    process.kill(pid, "SIGKILL");
  }
  expect(killed).toContain(first);
  const { losses } = JSON.parse(await disturbed) as Trained;
  expect(losses).toEqual(calm.losses);
}, 120_000);

it("a program with TINKER_TS_STUDIO shows the address of the studio, with a login", async () => {
  const address = await program(
    `
    console.error = console.log;
    const service = new ServiceClient();
    await service.getServerCapabilities();
    await service.close();
  `,
    { TINKER_TS_STUDIO: "1" },
  );
  expect(address).toMatch(/^studio http:\/\/127\.0\.0\.1:\d+\/studio#code=\S+$/);
});

it("programs name models by folders relative to where they run, wherever the server was started", async () => {
  await program(training("first", 1));
  mkdirSync(path.join(folder, "models"));
  symlinkSync(realModels.qwen3, path.join(folder, "models/mine"));
  const rank = await program(`
    process.chdir(${JSON.stringify(folder)});
    const service = new ServiceClient();
    for (const baseModel of ["./models/mine", "models/mine"]) {
      const training = await service.createLoraTrainingClient({ baseModel, rank: 4 });
      console.log((await training.getInfo()).loraRank);
      await service.createSamplingClient({ baseModel });
    }
    await service.close();
  `);
  expect(rank).toBe("4\n4");
});

describe("the data directory", () => {
  const print = (options: string): string => `
    const service = new ServiceClient(${options});
    const training = await service.createLoraTrainingClient({ baseModel: ${model}, rank: 4 });
    console.log((await training.getInfo()).loraRank);
    await service.close();
  `;

  it.each([
    ["an option", (place: string) => `{ dataDir: ${JSON.stringify(place)} }`],
    ["the base URL", (place: string) => `{ baseUrl: ${JSON.stringify(`local:${place}`)} }`],
    [
      "the environment of the client",
      (place: string) =>
        `{ env: { ...process.env, TINKER_TS_DATA_DIR: ${JSON.stringify(place)} } }`,
    ],
  ])("is chosen by %s", async (_name, options) => {
    // Where the cleanup looks for the server.
    dataDir = path.join(folder, "chosen");
    const env = { TINKER_TS_DATA_DIR: path.join(folder, "other") };
    expect(await program(print(options(dataDir)), env)).toBe("4");
    expect(readdirSync(folder)).not.toContain("other");
    expect(readdirSync(dataDir)).toContain("server.db");
  });

  it("in memory is a temporary one without a second process, and is removed", async () => {
    expect(await program(print('{ dataDir: "memory" }'))).toBe("4");
    expect(await program(print("{}"), { TINKER_TS_DATA_DIR: "memory" })).toBe("4");
    expect(readdirSync(folder).filter((name) => !name.startsWith("program-"))).toEqual([]);
  });

  it("in memory is removed when the program ends without closing its client", async () => {
    await program(`
      const service = new ServiceClient({ dataDir: "memory" });
      await service.createLoraTrainingClient({ baseModel: ${model}, rank: 4 });
      process.exit(0);
    `);
    expect(readdirSync(folder).filter((name) => !name.startsWith("program-"))).toEqual([]);
  });

  it("of an engine inside a program is refused with the ways out", async () => {
    mkdirSync(dataDir);
    const message = await program(`
      const inside = new ServiceClient({ inProcess: true });
      await inside.getServerCapabilities();
      const second = new ServiceClient();
      console.log(await second.getServerCapabilities().catch((error) => error.message));
      await inside.close();
      await second.close();
    `);
    expect(message).toMatch(/in use by process \d+.*inProcess.*dataDir/);
  });

  it("is an option of local: alone", async () => {
    const message = await program(`
      try { new ServiceClient({ baseUrl: "http://127.0.0.1:1", dataDir: "x" }); }
      catch (error) { console.log(error.message); }
    `);
    expect(message).toContain('dataDir: needs baseUrl "local:"');
  });
});
