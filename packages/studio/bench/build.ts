import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import path from "node:path";
import { budget } from "./budget.js";

const folder = path.resolve(import.meta.dirname, "..");

/** How long the page takes to build, after a change and without one. */
export function reportBuild(): void {
  rmSync(path.join(folder, "dist/.assets-stamp"), { force: true });
  budget("", "building the page", build(), 3, "s");
  budget("", "building it again, nothing changed", build(), 0.5, "s");
}

function build(): number {
  const startedAt = performance.now();
  const script = path.join(folder, "scripts/build-assets.mjs");
  const { status } = spawnSync(process.execPath, [script], { stdio: "inherit" });
  if (status !== 0) throw new Error("the page could not be built");
  return (performance.now() - startedAt) / 1000;
}
