import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { installProject, publishedPackages, readManifest } from "./support/installed-project.js";
import { root } from "./support/source-graph.js";

const entries = publishedPackages.flatMap(({ manifest: { name, exports } }) =>
  Object.keys(exports)
    .filter((entry) => entry !== "./package.json")
    .map((entry) => path.posix.join(name, entry)),
);

let project = "";

beforeAll(() => {
  project = installProject();
}, 180_000);

afterAll(() => {
  rmSync(project, { recursive: true, force: true });
}, 60_000);

it.each(entries)("%s imports in a project that installed the packed package", (entry) => {
  const code = `const m = await import(${JSON.stringify(entry)}); console.log(Object.keys(m).length)`;
  expect(Number(runModule(code))).toBeGreaterThan(0);
});

it("the client's entry points are bundled for Node, export what they do in the clone, and share classes", async () => {
  const clone: Record<string, unknown> = {
    "tinker-ts": await import("tinker-ts"),
    "tinker-ts/wire": await import("tinker-ts/wire"),
    "tinker-ts/run-log": await import("tinker-ts/run-log"),
  };
  const code = `
    const entries = [];
    for (const name of ${JSON.stringify(Object.keys(clone))}) entries.push([name, await import(name), import.meta.resolve(name)]);
    const things = new Map();
    for (const [, entry] of entries) {
      for (const [name, thing] of Object.entries(entry)) things.set(name, new Set([...(things.get(name) ?? []), thing]));
    }
    console.log(JSON.stringify({
      twice: [...things].filter(([, all]) => all.size > 1).map(([name]) => name),
      names: Object.fromEntries(entries.map(([name, entry]) => [name, Object.keys(entry)])),
      bundled: entries.every(([, , file]) => file.includes("/dist/node/")),
    }));`;
  const found = JSON.parse(runModule(code)) as unknown;
  const names = Object.entries(clone).map(([name, entry]) => [
    name,
    Object.keys(entry as object).toSorted(),
  ]);
  expect(found).toEqual({ twice: [], names: Object.fromEntries(names), bundled: true });
});

it("traces of the bundled client lead to its sources", () => {
  const code = `
    import { ServiceClient } from "tinker-ts";
    try { new ServiceClient({ baseURL: "x" }); } catch (error) { console.log(error.stack); }`;
  expect(runModule(code, "--enable-source-maps")).toMatch(
    /tinker-ts\/src\/clients\/service-client\.ts:\d+/,
  );
});

it("every package carries its license, a page about itself and where it comes from", () => {
  const license = readFileSync(path.join(root, "LICENSE"), "utf8");
  for (const { manifest } of publishedPackages) {
    const folder = path.join(project, "node_modules", manifest.name);
    expect(readFileSync(path.join(folder, "LICENSE"), "utf8"), manifest.name).toBe(license);
    expect(readFileSync(path.join(folder, "README.md"), "utf8")).toContain(`# ${manifest.name}\n`);
    const { repository, keywords, sideEffects } = readManifest(path.join(folder, "package.json"));
    expect(repository?.directory).toMatch(/^packages\//);
    expect(keywords?.length).toBeGreaterThan(2);
    expect(sideEffects).toBeDefined();
  }
});

it("a model trains and samples there", () => {
  const code = `
    import { ServiceClient, supervisedDatum } from "tinker-ts";
    const service = new ServiceClient({ baseUrl: "local:" });
    const training = await service.createLoraTrainingClient({ baseModel: "tinker-ts/sprout", rank: 4 });
    const data = [supervisedDatum([5, 8, 13], [21, 34])];
    const { forwardBackward } = await training.trainStep(data, "cross_entropy");
    const sampling = await training.saveWeightsAndGetSamplingClient();
    const { sequences } = await sampling.sample({ prompt: [5, 8], samplingParams: { maxTokens: 3 } });
    console.log(forwardBackward.metrics["loss:sum"] > 0, sequences[0].tokens.length);
    await service.close();`;
  expect(runModule(code)).toBe("true 3\n");
}, 60_000);

it("a server serves there with its studio, and a thread of the client's own samples from it", () => {
  const code = `
    import { ServiceClient } from "tinker-ts";
    import { startServer } from "@tinker-ts/server";
    const server = await startServer({ port: 0, logLevel: "error" });
    const service = new ServiceClient({ baseUrl: server.url, sideThread: true });
    const sampling = await service.createSamplingClient({ baseModel: "tinker-ts/sprout" });
    const { sequences } = await sampling.sample({ prompt: [5, 8], samplingParams: { maxTokens: 3 } });
    const page = await fetch(server.url + "/studio");
    console.log(sequences[0].tokens.length, page.status, page.headers.get("content-type"));
    await sampling.close();
    await service.close();
    await server.close();`;
  expect(runModule(code)).toBe("3 200 text/html; charset=utf-8\n");
}, 60_000);

it("a server without the studio's package says how to get it", () => {
  const folder = path.join(project, "node_modules/@tinker-ts/studio");
  const code = `
    import { startServer } from "@tinker-ts/server";
    const server = await startServer({ port: 0, logLevel: "error" });
    const response = await fetch(server.url + "/studio");
    console.log(response.status, await response.text());
    await server.close();`;
  renameSync(folder, `${folder}.away`);
  try {
    expect(runModule(code)).toMatch(/^503 .*npm install @tinker-ts\/studio/);
  } finally {
    renameSync(`${folder}.away`, folder);
  }
}, 60_000);

it("an engine whose library is not there says what to install, to programs and to doctor", () => {
  const library = path.join(project, "node_modules/@tinker-ts/engine/onnxruntime");
  const code = `
    import { ServiceClient } from "tinker-ts";
    const service = new ServiceClient({ baseUrl: "local:" });
    await service.createLoraTrainingClient({ baseModel: "tinker-ts/sprout" }).catch((error) => {
      console.log(error.message);
    });
    await service.close();`;
  const run = (...line: string[]): string =>
    spawnSync(process.execPath, line, {
      cwd: project,
      encoding: "utf8",
      env: { ...process.env, TINKER_TS_DATA_DIR: path.join(project, "data-without") },
    }).stdout;
  renameSync(library, `${library}.away`);
  try {
    expect(run("--input-type=module", "--eval", code)).toContain("npm install onnxruntime-node@");
    const doctor = run("node_modules/@tinker-ts/cli/bin/tinker-ts.js", "doctor", "--json");
    const { checks } = JSON.parse(doctor) as { checks: { check: string; state: string }[] };
    expect(checks.find(({ check }) => check === "Engine")).toMatchObject({
      state: "broken",
      finding: expect.stringContaining("npm install onnxruntime-node@"),
    });
  } finally {
    renameSync(`${library}.away`, library);
  }
}, 60_000);

it("the program runs there, by its own name and by that of the client", () => {
  const run = (file: string): string =>
    execFileSync(process.execPath, [path.join(project, "node_modules", file), "version"], {
      cwd: project,
      encoding: "utf8",
    });
  expect(run("@tinker-ts/cli/bin/tinker-ts.js")).toMatch(/^tinker-ts \d+\.\d+\.\d+\n$/);
  expect(run("tinker-ts/bin/tinker-ts.js")).toBe(run("@tinker-ts/cli/bin/tinker-ts.js"));
  expect(existsSync(path.join(project, "node_modules/.bin/tinker-ts"))).toBe(true);
});

it("the client alone says how to get the command line", () => {
  const alone = mkdtempSync(path.join(tmpdir(), "tinker-ts-alone-"));
  cpSync(path.join(project, "node_modules/tinker-ts"), path.join(alone, "tinker-ts"), {
    recursive: true,
  });
  const { status, stderr } = spawnSync(process.execPath, ["tinker-ts/bin/tinker-ts.js", "--help"], {
    cwd: alone,
    encoding: "utf8",
  });
  rmSync(alone, { recursive: true, force: true });
  expect(status).toBe(1);
  expect(stderr).toContain("npx @tinker-ts/cli");
});

it("every entry point type-checks there under the strictest flags", () => {
  const source = entries.map((entry, index) => `export * as m${index} from "${entry}";`).join("\n");
  writeFileSync(path.join(project, "check.ts"), source);
  writeFileSync(
    path.join(project, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: {
        module: "NodeNext",
        target: "ES2023",
        lib: ["ES2023", "ESNext.Disposable"],
        strict: true,
        exactOptionalPropertyTypes: true,
        noEmit: true,
        skipLibCheck: false,
        typeRoots: [path.join(root, "node_modules/@types")],
        types: ["node"],
      },
      files: ["check.ts"],
    }),
  );
  const tsc = path.join(root, "node_modules/typescript/bin/tsc");
  const { stdout } = spawnSync(process.execPath, [tsc, "-p", project], { encoding: "utf8" });
  expect(stdout).toBe("");
}, 60_000);

/** What a program prints that is run in the project. */
function runModule(code: string, ...flags: string[]): string {
  return execFileSync(process.execPath, [...flags, "--input-type=module", "--eval", code], {
    cwd: project,
    encoding: "utf8",
    env: { ...process.env, TINKER_TS_DATA_DIR: path.join(project, "data") },
  });
}
