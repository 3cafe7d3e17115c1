import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/**
 * Runs a program in a process of its own, in an empty folder, and counts the calls of the operating system
 * on files that it made, as Node itself records them.
 */
export function tracedFileCalls(program: string): Record<string, number> {
  const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-trace-"));
  try {
    const args = [
      "--trace-event-categories=node.fs.async",
      "--trace-event-file-pattern=trace.json",
      "--input-type=module",
      "--eval",
      program,
    ];
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
    const trace = readFileSync(path.join(folder, "trace.json"), "utf8");
    const { traceEvents } = JSON.parse(trace) as { traceEvents: { name: string; ph: string }[] };
    const counts: Record<string, number> = {};
    for (const { name, ph } of traceEvents) if (ph === "b") counts[name] = (counts[name] ?? 0) + 1;
    return counts;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
