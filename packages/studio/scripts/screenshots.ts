// Pictures of every screen from real runs: the quickstart, a recipe of reinforcement learning, a run that fails.
// `npm run screenshots -w packages/studio -- [folder]`; with STUDIO_URL the runs of that server are shown instead.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pack from "@sparticuz/chromium";
import { chromium, type Page } from "playwright-core";
import { ServiceClient, supervisedDatum } from "tinker-ts";
import type { StudioRuns } from "tinker-ts/wire/studio";
import { buildAssets } from "./build-assets.mjs";

const root = path.resolve(import.meta.dirname, "../../..");
const cli = path.join(root, "packages/cli/bin/tinker-ts.js");
const folder = path.resolve(process.argv[2] ?? path.join(root, ".cache/screenshots"));
const looks = [
  { name: "light", width: 1280, height: 800, colorScheme: "light" },
  { name: "dark", width: 1280, height: 800, colorScheme: "dark" },
  { name: "narrow", width: 390, height: 844, colorScheme: "light" },
  { name: "small", width: 1000, height: 620, colorScheme: "light" }, // those of the documentation
] as const;

await buildAssets();
mkdirSync(folder, { recursive: true });
const chosen = process.env["LOOKS"]?.split(",");
const wanted = process.env["VIEWS"]?.split(",");
const given = process.env["STUDIO_URL"];
const server = given === undefined ? await startServer() : null;
const url = given ?? server!.url;
try {
  if (server) await makeRuns(url);
  await takePictures(url);
} finally {
  server?.stop();
}

async function startServer(): Promise<{ url: string; stop: () => void }> {
  const data = mkdtempSync(path.join(tmpdir(), "tinker-ts-screenshots-"));
  const child: ChildProcess = spawn(
    process.execPath,
    [cli, "serve", "--port", "0", "--data", data],
    {
      stdio: ["ignore", "pipe", "ignore"],
    },
  );
  let said = "";
  for await (const text of child.stdout!.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    said += String(text);
    const found = /listening on (\S+)/.exec(said)?.[1];
    if (found === undefined) continue;
    const stop = (): void => {
      child.kill();
      child.once("exit", () => rmSync(data, { recursive: true, force: true }));
    };
    return { url: found, stop };
  }
  throw new Error(`the server ended and said only: ${said}`);
}

async function makeRuns(baseUrl: string): Promise<void> {
  const env = {
    ...process.env,
    TINKER_BASE_URL: baseUrl,
    TINKER_API_KEY: "tml-screenshots",
    TINKER_MODEL: "tinker-ts/sprout",
  };
  const run = (args: readonly string[], expected: readonly number[] = [0]): void => {
    const { status } = spawnSync(process.execPath, args, { cwd: root, env, stdio: "inherit" });
    if (status === null || !expected.includes(status))
      throw new Error(`${args.join(" ")} ended with ${status}`);
  };
  run([cli, "quickstart", "--quiet"]);
  const output = mkdtempSync(path.join(tmpdir(), "tinker-ts-recipe-"));
  run([cli, "recipe", "run", "sums", "--quiet", "--max-steps", "8", "--output", output], [0, 1]); // 1: too few steps
  rmSync(output, { recursive: true, force: true });
  const service = new ServiceClient({ baseUrl, apiKey: "tml-screenshots" });
  const training = await service.createLoraTrainingClient({
    baseModel: "tinker-ts/sprout",
    rank: 8,
  });
  const data = [supervisedDatum([5, 8, 13], [21, 34]), supervisedDatum([3, 5, 8], [13, 21, 34])];
  try {
    for (let step = 0; step < 30; step++) {
      const learningRate = step < 12 ? 2e-3 : 1e30;
      await training.trainStep(data, "cross_entropy", { adamParams: { learningRate } });
      if (step === 8) await training.saveState("good");
    }
  } catch {
    // It was meant to fail.
  }
  await service.close();
}

async function takePictures(baseUrl: string): Promise<void> {
  const { runs } = (await (await fetch(`${baseUrl}/studio/api/runs`)).json()) as StudioRuns;
  const named = (test: (run: (typeof runs)[number]) => boolean): string =>
    encodeURIComponent((runs.find(test) ?? runs[0]!).id);
  const quick = named(({ name }) => name.includes("quickstart"));
  const rl = named(({ kind, source }) => kind === "rl" && source === "log");
  const failed = named(({ status }) => status === "failed");
  const chat = async (page: Page): Promise<void> => {
    const prompt = page.getByRole("textbox", { name: "Prompt", exact: true });
    await prompt.fill("In Garden Talk: The red cat hears a tree.");
    await prompt.press("Control+Enter");
    await page.getByRole("button", { name: "Send" }).waitFor();
  };
  const point = async (page: Page): Promise<void> => {
    const box = await page.locator('[data-metric="nll"] .u-over').boundingBox();
    if (box) await page.mouse.move(box.x + box.width * 0.3, box.y + box.height / 2);
  };
  const openRollout = async (page: Page): Promise<void> => {
    await page.locator(".exhibit-row").first().click();
    await page.locator(".tokens").waitFor();
  };
  const views: readonly [string, string, ((page: Page) => Promise<void>)?][] = [
    ["overview", ""],
    ["run", `/runs/${quick}?smooth=0.6`, point],
    ["run-rl", `/runs/${rl}`],
    ["run-failed", `/runs/${failed}`],
    ["run-log-scale", `/runs/${quick}?logy=1`],
    ["rollouts", `/runs/${rl}?tab=rollouts&colour=logprob`, openRollout],
    ["data", `/runs/${quick}?tab=data`],
    ["data-logprob", `/runs/${rl}?tab=data&colour=advantage`],
    ["log", `/runs/${quick}?tab=log`],
    ["config", `/runs/${quick}?tab=config`],
    ["files", `/runs/${quick}?tab=files`],
    ["compare", `/compare?runs=${quick},${rl},${failed}`],
    ["playground", `/playground?run=${quick}&temp=0`, chat],
    ["checkpoints", "/checkpoints"],
    ["machine", "/machine"],
  ];
  const browser = await chromium.launch({
    executablePath: process.env["CHROMIUM_PATH"] ?? (await pack.executablePath()),
    args: ["--no-sandbox"],
  });
  for (const { name: look, width, height, colorScheme } of looks) {
    if (chosen && !chosen.includes(look)) continue;
    const context = await browser.newContext({
      viewport: { width, height },
      colorScheme,
      locale: "en-US",
    });
    const page = await context.newPage();
    page.on("console", (message) => {
      if (message.type() === "error") console.error(`${look}: ${message.text()}`);
    });
    for (const [name, view, prepare] of views) {
      if (wanted && !wanted.includes(name)) continue;
      if (look === "small" && name !== "run" && name !== "playground") continue;
      await page.goto(`${baseUrl}/studio${view}`);
      await page.getByRole("heading", { level: 1 }).first().waitFor({ state: "attached" });
      await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
      await page.waitForLoadState("networkidle", { timeout: 1500 }).catch(() => undefined); // the stream stays open
      await prepare?.(page);
      await page.screenshot({ path: path.join(folder, `${name}-${look}.png`) });
      const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      if (isWide) console.error(`${name}-${look} scrolls sideways`);
    }
    await context.close();
  }
  await browser.close();
  console.log(folder);
}
