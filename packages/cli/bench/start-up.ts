// How soon the command line is there: its help, and a server that listens.
//   npm run bench -w packages/cli
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import path from "node:path";

const program = path.resolve(import.meta.dirname, "../bin/tinker-ts.js");
const limits = { helpMs: 120, serveMs: 1500 };
const rounds = { help: 15, serve: 5 };

const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-bench-"));
try {
  console.log(`load of the machine   ${loadavg()[0]?.toFixed(1)}; repeat when it is above 1`);
  reportHelp();
  await reportServe();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** `tinker-ts --help` against Node with a program that does nothing, turn by turn. */
function reportHelp(): void {
  const empty = path.join(folder, "empty.mjs");
  writeFileSync(empty, "");
  const times = { empty: [] as number[], help: [] as number[] };
  for (let round = 0; round < rounds.help; round++) {
    times.empty.push(runMs([empty]));
    times.help.push(runMs([program, "--help"]));
  }
  const [emptyMs, helpMs] = [median(times.empty), median(times.help)];
  console.log(`an empty program      ${emptyMs.toFixed(0)} ms`);
  console.log(
    `tinker-ts --help      ${helpMs.toFixed(0)} ms, ${(helpMs / emptyMs).toFixed(2)} times the empty program    ${ratio(helpMs, limits.helpMs)} of the limit`,
  );
}

/** From starting the process to the line that says where it listens, with the embedded model. */
async function reportServe(): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < rounds.serve; round++) {
    const startedAt = performance.now();
    const data = path.join(folder, `data-${round}`);
    const server = spawn(process.execPath, [program, "serve", "--port", "0", "--data", data], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    await once(server.stdout, "data");
    times.push(performance.now() - startedAt);
    server.kill();
    await once(server, "exit");
  }
  const serveMs = median(times);
  console.log(
    `tinker-ts serve       ${serveMs.toFixed(0)} ms until it listens    ${ratio(serveMs, limits.serveMs)} of the limit`,
  );
}

function runMs(args: readonly string[]): number {
  const startedAt = performance.now();
  const { status } = spawnSync(process.execPath, args, { stdio: "ignore" });
  if (status !== 0) throw new Error(`${args.join(" ")} ended with ${status}`);
  return performance.now() - startedAt;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)]!;
}

function ratio(value: number, limit: number): string {
  return `${((value / limit) * 100).toFixed(0)} %`;
}
