import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { closeBrowser, StudioTab } from "./support/browser.js";
import { StudioServer } from "./support/server.js";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
const cli = path.resolve(import.meta.dirname, "../../cli/bin/tinker-ts.js");
const started: ChildProcess[] = [];

/** Starts `tinker-ts studio --no-open` and returns its first output, and its exit. */
function openStudio(env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [cli, "studio", "--no-open"], {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      TINKER_BASE_URL: "",
      TINKER_API_KEY: "",
      TINKER_TS_IN_PROCESS: "",
      ...env,
    },
  });
  started.push(child);
  let said = "";
  const spoken = new Promise<string>((resolve) => {
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        said += text;
        if (/\/studio(#\S+)?\n/.test(said)) resolve(said);
      });
    child.once("close", () => resolve(said));
  });
  return { child, spoken };
}

const program = `
  const { ServiceClient } = await import("tinker-ts");
  const service = new ServiceClient({ baseUrl: "local:" });
  await service.getServerCapabilities();
  process.stdin.resume();
  console.log("open");
`;

/** A program with `local:` that stays open; resolves when it is connected. */
async function runLocal(env: Readonly<Record<string, string>>): Promise<ChildProcess> {
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    cwd: import.meta.dirname,
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  started.push(child);
  await once(child.stdout, "data");
  return child;
}

describe.runIf(isFull)("opening the studio", () => {
  afterEach(async () => {
    for (const child of started.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill("SIGTERM");
      await once(child, "exit");
    }
  });
  afterAll(closeBrowser);

  it("serve prints one line on standard output, and the studio's working address on standard error", async () => {
    const server = await StudioServer.start();
    try {
      await expect.poll(() => server.stderr).toContain(`studio ${server.url}/studio\n`);
      expect(server.stdout).toBe(`listening on ${server.url}\n`);
      const [, address = ""] = /studio (http\S+)\n/.exec(server.stderr) ?? [];
      expect((await fetch(address)).status).toBe(200);
      await using tab = await StudioTab.open(address);
      await tab.page.getByText("No runs yet").waitFor();
    } finally {
      await server.close();
    }
  }, 60_000);

  it("opens a served directory, serves a free one, and joins programs that share one", async () => {
    const server = await StudioServer.start();
    try {
      const held = openStudio({ TINKER_TS_DATA_DIR: server.dataDir });
      expect(await held.spoken).toContain(`${server.url}/studio\n`);
      await server.train(1);
      await server.kill();
      const free = openStudio({ TINKER_TS_DATA_DIR: server.dataDir });
      const [address = ""] = /http:\S+\/studio\S*/.exec(await free.spoken) ?? [];
      await using tab = await StudioTab.open(address);
      await tab.page
        .getByRole("link", { name: /sprout/ })
        .first()
        .waitFor();
      await tab.page.goto("about:blank");
      free.child.kill("SIGINT");
      await once(free.child, "exit");
      const shared = await runLocal({
        TINKER_TS_DATA_DIR: server.dataDir,
        TINKER_TS_IN_PROCESS: "",
      });
      const beside = openStudio({ TINKER_TS_DATA_DIR: server.dataDir });
      await using other = await StudioTab.open(/http:\S+\/studio\S*/.exec(await beside.spoken)![0]);
      await other.page
        .getByRole("link", { name: /sprout/ })
        .first()
        .waitFor();
      shared.kill("SIGKILL");
      await once(shared, "exit");
    } finally {
      await server.close();
    }
  }, 120_000);

  it("suggests an option for a program that runs local: in its own process, and opens its studio with it", async () => {
    const dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-way-in-"));
    try {
      for (const wanted of ["", "1"]) {
        const local = await runLocal({
          TINKER_TS_DATA_DIR: dataDir,
          TINKER_TS_IN_PROCESS: "1",
          TINKER_TS_STUDIO: wanted,
        });
        const output = await openStudio({ TINKER_TS_DATA_DIR: dataDir }).spoken;
        if (wanted === "") expect(output).toContain("TINKER_TS_STUDIO=1");
        else {
          await using own = await StudioTab.open(/http:\S+\/studio\S*/.exec(output)![0]);
          await own.page.getByText("No runs yet").waitFor();
        }
        local.kill("SIGKILL");
        await once(local, "exit");
      }
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  }, 60_000);
});
