import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
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
    env: { ...process.env, TINKER_BASE_URL: "", TINKER_API_KEY: "", ...env },
  });
  started.push(child);
  let said = "";
  const spoken = new Promise<string>((resolve) => {
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        said += text;
        if (/\/studio\n/.test(said)) resolve(said);
      });
    child.once("close", () => resolve(said));
  });
  return { child, spoken };
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

  it("opens a served directory, serves a free one, and suggests an option for local:", async () => {
    const server = await StudioServer.start();
    try {
      const held = openStudio({ TINKER_TS_DATA_DIR: server.dataDir });
      expect(await held.spoken).toContain(`${server.url}/studio\n`);
      await server.train(1);
      await server.kill();
      const free = openStudio({ TINKER_TS_DATA_DIR: server.dataDir });
      const [address = ""] = /http:\S+\/studio/.exec(await free.spoken) ?? [];
      await using tab = await StudioTab.open(address);
      await tab.page
        .getByRole("link", { name: /sprout/ })
        .first()
        .waitFor();
      await tab.page.goto("about:blank");
      free.child.kill("SIGINT");
      await once(free.child, "exit");
      const program = `
        const { ServiceClient } = await import("tinker-ts");
        const service = new ServiceClient({ baseUrl: "local:" });
        await service.getServerCapabilities();
        process.stdin.resume();
        console.log("open");
      `;
      for (const wanted of ["", "1"]) {
        const local = spawn(process.execPath, ["--input-type=module", "-e", program], {
          cwd: import.meta.dirname,
          env: { ...process.env, TINKER_TS_DATA_DIR: server.dataDir, TINKER_TS_STUDIO: wanted },
          stdio: ["pipe", "pipe", "inherit"],
        });
        started.push(local);
        await once(local.stdout, "data");
        const asked = openStudio({ TINKER_TS_DATA_DIR: server.dataDir });
        const said = await asked.spoken;
        if (wanted === "") expect(said).toContain("TINKER_TS_STUDIO=1");
        else {
          await using own = await StudioTab.open(/http:\S+\/studio/.exec(said)![0]);
          await own.page
            .getByRole("link", { name: /sprout/ })
            .first()
            .waitFor();
        }
        local.kill("SIGKILL");
        await once(local, "exit");
      }
    } finally {
      await server.close();
    }
  }, 120_000);
});
