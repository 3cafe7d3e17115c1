import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { ServiceClient } from "tinker-ts";
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
  rmSync(folder, { recursive: true, force: true });
});

function start(args: readonly string[], env: Readonly<Record<string, string>> = {}): CliProcess {
  const program = new CliProcess(args, { TINKER_TS_DATA_DIR: folder, ...env });
  started.push(program);
  return program;
}

it("is named by serve on standard error, opened where its data is held, and served where it is not", async () => {
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
  const [, address = ""] = await own.sees(/^(http:\S+\/studio)\n$/);
  expect((await fetch(`${address}/api/hello`)).status).toBe(200);
  own.kill("SIGINT");
  expect((await own.finished).code).toBe(0);
});

it("logs in with the key it has, by a code that is good once", async () => {
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

it("logs in with a credential command, and says when the key is not known there", async () => {
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

it("shows the runs of a server that has no studio, with whatever credential the client has", async () => {
  const key = "tml-secret-key";
  const server = start(["serve", "--port", "0", "--api-key", key]);
  const [, url = ""] = await server.sees(/^listening on (\S+)\n$/);
  const service = new ServiceClient({ baseUrl: url, apiKey: key, telemetry: false });
  const training = await service.createLoraTrainingClient({
    baseModel: "tinker-ts/sprout",
    rank: 4,
  });
  const { path: saved } = await training.saveState("kept").result();
  await service.close();
  const limited = await startLimited(url, ["/studio"]);
  try {
    const command = ["studio", "--no-open", "--base-url", limited.url];
    const keyless = await start(command).finished;
    expect(keyless).toMatchObject({ code: 1, out: "" });
    expect(keyless.err).toContain("--api-key or TINKER_API_KEY");
    const viewer = start(command, { TINKER_CREDENTIAL_CMD: `echo ${key}` });
    const [, address = ""] = await viewer.sees(/^(http:\S+\/studio)\n$/);
    const ask = async (what: string) => (await fetch(`${address}/api/${what}`)).json();
    expect(await ask("runs")).toMatchObject({
      runs: [{ source: "remote", id: `remote-${training.modelId}`, baseModel: "tinker-ts/sprout" }],
    });
    expect(await ask("checkpoints")).toMatchObject({ checkpoints: [{ path: saved }] });
    viewer.kill("SIGINT");
    expect((await viewer.finished).code).toBe(0);
  } finally {
    await limited.stop();
  }
});

it("looks into a program with local: when that is told to listen, and says how otherwise", async () => {
  const program = `
    const { ServiceClient } = await import("tinker-ts");
    const service = new ServiceClient({ baseUrl: "local:" });
    await service.getServerCapabilities();
    console.log("open");
    process.stdin.once("data", async () => { await service.close(); process.exit(0); });
  `;
  for (const wanted of ["", "1"]) {
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      cwd: import.meta.dirname,
      env: { ...process.env, TINKER_TS_DATA_DIR: folder, TINKER_TS_STUDIO: wanted },
      stdio: ["pipe", "pipe", "pipe"],
    });
    const ended = once(child, "exit");
    await once(child.stdout, "data");
    const found = await start(["studio", "--no-open"]).finished;
    if (wanted === "1") {
      expect(found).toMatchObject({ code: 0 });
      expect(found.out).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/studio\n$/);
      expect((await fetch(`${found.out.trim()}/api/hello`)).status).toBe(200);
    } else {
      expect(found).toMatchObject({ code: 1, out: "" });
      expect(found.err).toContain("TINKER_TS_STUDIO=1");
    }
    child.stdin.write("end\n");
    await ended;
  }
});
