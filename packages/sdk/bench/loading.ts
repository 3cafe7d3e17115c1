// What a program pays to load the client: time over an empty program on Node, bytes in a browser.
//   npm run bench -w packages/sdk
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { bundleForBrowser, maxBrowserBytes } from "../test/support/browser-bundle.js";

const rounds = 41;
const maxImportMs = 40;

/** A program's time from start to end, and the CPU time it says it took. */
interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
}

const report = `
const { user, system } = process.cpuUsage();
process.stdout.write(String((user + system) / 1000));`;
const programs = { empty: report, client: `import "tinker-ts";${report}` };

run(programs.empty);
run(programs.client);
const costs = { empty: [] as Cost[], client: [] as Cost[] };
// In turns, so that a disturbance hits both.
for (let round = 0; round < rounds; round++) {
  costs.empty.push(run(programs.empty));
  costs.client.push(run(programs.client));
}
const [emptyWall, clientWall] = [costs.empty, costs.client].map((all) =>
  median(all.map(({ wallMs }) => wallMs)),
) as [number, number];
const [emptyCpu, clientCpu] = [costs.empty, costs.client].map((all) =>
  median(all.map(({ cpuMs }) => cpuMs)),
) as [number, number];
console.log(`import of tinker-ts, median of ${rounds} processes each, in turns`);
console.log(`  empty program        ${emptyWall.toFixed(1)} ms, ${emptyCpu.toFixed(1)} ms CPU`);
console.log(
  `  import "tinker-ts"   ${clientWall.toFixed(1)} ms, ${clientCpu.toFixed(1)} ms CPU; ${against(clientWall - emptyWall, maxImportMs)} ms more, ${(clientCpu - emptyCpu).toFixed(1)} ms CPU more (${(clientCpu / emptyCpu).toFixed(2)} x)`,
);

const { gzipBytes } = await bundleForBrowser();
console.log(
  `the client in a browser: ${against(gzipBytes / 1000, maxBrowserBytes / 1000)} kB gzip`,
);

function run(program: string): Cost {
  const startedAt = performance.now();
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ["--input-type=module", "--eval", program],
    { cwd: fileURLToPath(new URL("..", import.meta.url)), encoding: "utf8" },
  );
  if (status !== 0) throw new Error(stderr);
  return { wallMs: performance.now() - startedAt, cpuMs: Number(stdout) };
}

function against(value: number, most: number): string {
  return `${value.toFixed(1)} of at most ${most} (${(value / most).toFixed(2)} x)`;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
