// What a program pays to load the client: time over an empty program on Node, bytes in a browser.
//   npm run bench -w packages/sdk
// On Node it is the packed package that counts, in a project that has installed it.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { installProject } from "../../../test/support/installed-project.js";
import { bundleForBrowser, maxBrowserBytes } from "../test/support/browser-bundle.js";

const rounds = 31;
const maxImportMs = 40;

/** A program's time from start to end, and the CPU time it says it took. */
interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
}

const report = `
const { user, system } = process.cpuUsage();
process.stdout.write(String((user + system) / 1000));`;
const entries = ["tinker-ts", "tinker-ts/wire", "tinker-ts/run-log"];
const programs = [report, ...entries.map((entry) => `import "${entry}";${report}`)];

const project = installProject();
programs.forEach(run);
const costs = programs.map((): Cost[] => []);
// In turns, so that a disturbance hits all.
for (let round = 0; round < rounds; round++) {
  programs.forEach((program, index) => costs[index]!.push(run(program)));
}
rmSync(project, { recursive: true, force: true });
const [empty, ...loaded] = costs.map((all) => ({
  wallMs: median(all.map(({ wallMs }) => wallMs)),
  cpuMs: median(all.map(({ cpuMs }) => cpuMs)),
})) as [Cost, ...Cost[]];
console.log(`import in a fresh process, median of ${rounds} each, in turns`);
console.log(
  `  empty program     ${empty.wallMs.toFixed(1)} ms, ${empty.cpuMs.toFixed(1)} ms of it CPU`,
);
loaded.forEach(({ wallMs, cpuMs }, index) => {
  const more = against(wallMs - empty.wallMs, maxImportMs);
  const moreCpu = (cpuMs - empty.cpuMs).toFixed(1);
  console.log(
    `  ${entries[index]!.padEnd(17)} ${more} ms more, ${moreCpu} ms more CPU (${(cpuMs / empty.cpuMs).toFixed(2)} x)`,
  );
});

const { gzipBytes, fileBytes, startBytes } = await bundleForBrowser();
console.log("the client in a browser, after gzip");
console.log(`  packed together  ${against(gzipBytes / 1000, maxBrowserBytes / 1000)} kB`);
console.log(
  `  ${fileBytes.length} files by themselves: ${sumOf(fileBytes).toFixed(1)} kB, of which ${sumOf(startBytes).toFixed(1)} kB to start, the others when they are needed`,
);

function run(program: string): Cost {
  const startedAt = performance.now();
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ["--input-type=module", "--eval", program],
    { cwd: project, encoding: "utf8" },
  );
  if (status !== 0) throw new Error(stderr);
  return { wallMs: performance.now() - startedAt, cpuMs: Number(stdout) };
}

function sumOf(bytes: readonly number[]): number {
  return bytes.reduce((total, size) => total + size, 0) / 1000;
}

function against(value: number, most: number): string {
  return `${value.toFixed(1)} of at most ${most} (${(value / most).toFixed(2)} x)`;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
