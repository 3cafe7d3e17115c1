import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";
import { startLimited } from "./support/limited-server.js";
import { CliProcess } from "./support/run-process.js";

let folder: string;
let started: CliProcess[];
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-studio-"));
  started = [];
});
afterEach(async () => {
  for (const program of started) {
    program.kill("SIGTERM");
    await program.finished;
  }
  endShared();
  rmSync(folder, { recursive: true, force: true, maxRetries: 50 });
});

/** Stops the server that programs share. */
function endShared(): void {
  try {
    const note = readFileSync(path.join(folder, "holder.json"), "utf8");
    process.kill((JSON.parse(note) as { pid: number }).pid, "SIGKILL");
  } catch {
    // There is none.
  }
}

function start(args: readonly string[], env: Readonly<Record<string, string>> = {}): CliProcess {
  const program = new CliProcess(args, {
    TINKER_TS_DATA_DIR: folder,
    TINKER_TS_IN_PROCESS: "",
    ...env,
  });
  started.push(program);
  return program;
}

it("is printed by serve on standard error, opened on a running server, and served otherwise", async () => {
  const server = start(["serve", "--port", "0"]);
  const [, url = ""] = await server.sees(/^listening on (\S+)\n$/);
  await expect.poll(() => server.err, { timeout: 10_000 }).toContain(`studio ${url}/studio\n`);
  expect(server.out).toBe(`listening on ${url}\n`);
  expect((await fetch(`${url}/studio/api/hello`)).status).toBe(200);
  const found = await start(["studio", "--no-open"]).finished;
  expect(found).toMatchObject({ code: 0, out: `${url}/studio\n` });
  const named = await start(["studio", "--no-open", "--base-url", url]).finished;
  expect(named.out).toBe(`${url}/studio\n`);
  server.kill("SIGTERM");
  await server.finished;
  const own = start(["studio", "--no-open"]);
  const [, address = ""] = await own.sees(/^(http:\S+\/studio)#code=\S+\n$/);
  expect((await fetch(`${address}/api/hello`)).status).toBe(200);
  own.kill("SIGINT");
  expect((await own.finished).code).toBe(0);
});

it("stays open while programs train, shows their runs, and folders of logs", async () => {
  const logs = path.join(folder, "logs/mine");
  mkdirSync(logs, { recursive: true });
  writeFileSync(path.join(logs, "config.json"), "{}");
  writeFileSync(path.join(logs, "metrics.jsonl"), '{"step": 0, "loss": 1}\n');
  const studio = start(["studio", "--no-open", "--logs", path.join(folder, "logs")]);
  const [, origin = "", code = ""] = await studio.sees(/^(http:\S+)\/studio#code=(\S+)\n$/);
  const program = `
    const { ServiceClient } = await import("tinker-ts");
    const service = new ServiceClient({ baseUrl: "local:" });
    const training = await service.createLoraTrainingClient({ baseModel: "tinker-ts/sprout", rank: 2 });
    const data = [{ modelInput: [1, 2], lossFnInputs: { target_tokens: [2, 3], weights: [1, 1] } }];
    await training.trainStep(data, "cross_entropy", { adamParams: { learningRate: 1e-2 } });
    await service.close();
  `;
  const train = () =>
    promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], {
      cwd: import.meta.dirname,
      env: { ...process.env, TINKER_TS_DATA_DIR: folder, TINKER_TS_IN_PROCESS: "" },
    });
  await Promise.all([train(), train()]);
  const headers = { "x-tinker-studio": "1" };
  const body = JSON.stringify({ code });
  const login = await fetch(`${origin}/studio/api/login`, { method: "POST", headers, body });
  const { token } = (await login.json()) as { token: string };
  const authorized = { ...headers, authorization: `Bearer ${token}` };
  const listed = await fetch(`${origin}/studio/api/runs`, { headers: authorized });
  const { runs } = (await listed.json()) as { runs: { id: string }[] };
  expect(runs.filter(({ id }) => id.includes(":train:"))).toHaveLength(2);
  expect(runs.filter(({ id }) => id.startsWith("folder-"))).toHaveLength(1);
});

it("is found on a custom port", async () => {
  const studio = start(["studio", "--no-open", "--port", "0"]);
  const [, origin = ""] = await studio.sees(/^(http:\S+)\/studio#/);
  const free = await startLimited(origin, []);
  const { port } = new URL(free.url);
  await free.stop();
  const other = start(["studio", "--no-open", "--port", port]);
  const [, address = ""] = await other.sees(/^(http:\S+\/studio)#/);
  expect(new URL(address).port).toBe(port);
  expect((await fetch(`${address}/api/hello`)).status).toBe(200);
});

it("logs in with the key it has, by a one-time code", async () => {
  const key = "tml-secret-key";
  const server = start(["serve", "--port", "0", "--api-key", key]);
  const [, url = ""] = await server.sees(/^listening on (\S+)\n$/);
  const { out } = await start(["studio", "--no-open", "--base-url", url, "--api-key", key])
    .finished;
  const code = /\/studio#code=(\S+)\n$/.exec(out)?.[1];
  const login = () =>
    fetch(`${url}/studio/api/login`, {
      method: "POST",
      headers: { "x-tinker-studio": "1" },
      body: JSON.stringify({ code }),
    });
  expect((await login()).status).toBe(200);
  expect((await login()).status).toBe(401);
});

it("logs in with a credential command, and reports an unknown key", async () => {
  const key = "tml-secret-key";
  const server = start(["serve", "--port", "0", "--api-key", key]);
  const [, url = ""] = await server.sees(/^listening on (\S+)\n$/);
  const command = ["studio", "--no-open", "--base-url", url];
  const asked = await start(command, { TINKER_CREDENTIAL_CMD: `echo ${key}` }).finished;
  expect(asked.out).toMatch(/\/studio#code=\S+\n$/);
  const refused = await start([...command, "--api-key", "tml-another-key"]).finished;
  expect(refused).toMatchObject({ code: 1, out: "" });
  expect(refused.err).toContain("The key is not known there.");
  const keyless = await start(command).finished;
  expect(keyless).toMatchObject({ code: 0, out: `${url}/studio\n` });
});

it("suggests run list and log folders if a server has no studio", async () => {
  const server = start(["serve", "--port", "0"]);
  const [, url = ""] = await server.sees(/^listening on (\S+)\n$/);
  const limited = await startLimited(url, ["/studio"]);
  try {
    const shown = await start(["studio", "--no-open", "--base-url", limited.url]).finished;
    expect(shown).toMatchObject({ code: 1, out: "" });
    expect(shown.err).toContain(`${limited.url} has no studio.`);
    expect(shown.err).toContain(`tinker-ts run list --base-url ${limited.url}`);
  } finally {
    await limited.stop();
  }
});
