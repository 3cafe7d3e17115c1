// Makes a clone ready to run: installs dependencies and compiles, each only when something changed.
// Plain JavaScript without imports from node_modules, because it runs before they exist.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import path from "node:path";
import { areAssetsBuilt } from "../packages/studio/scripts/build-assets.mjs";
import { carriedFolder, carryRuntime } from "./carry-runtime.mjs";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");

const minimumNode = [20, 19];
const installStamp = path.join(root, "node_modules", ".installed-lock");

export function ensureReady() {
  checkNode();
  install();
  build();
}

/** Runs a program in the workspace root and ends this process with its exit code when it fails. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, stdio: "inherit", ...options });
  if (result.error) throw result.error;
  if (result.status !== 0) process.exit(result.status ?? 1);
}

/** The path of a dependency's JavaScript entry, to be started with this same Node. */
export function binary(name, file) {
  return path.join(root, "node_modules", name, file);
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > minimumNode[0] || (major === minimumNode[0] && minor >= minimumNode[1])) return;
  console.error(
    `tinker-ts needs Node ${minimumNode.join(".")} or newer; this is ${process.versions.node}.`,
  );
  process.exit(1);
}

function install() {
  const lock = createHash("sha256")
    .update(readFileSync(path.join(root, "package-lock.json")))
    .digest("hex");
  if (existsSync(installStamp) && readFileSync(installStamp, "utf8") === lock) return;
  step("Installing dependencies (npm ci)", () => {
    const npm = process.env.npm_execpath;
    const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    if (npm) run(process.execPath, [npm, ...args]);
    else run(process.platform === "win32" ? "npm.cmd" : "npm", args);
    writeFileSync(installStamp, lock);
  });
}

function build() {
  step("Compiling what changed (tsc -b)", () => {
    run(process.execPath, [binary("typescript", "bin/tsc"), "-b"]);
  });
  if (!existsSync(carriedFolder())) carryRuntime();
  if (areAssetsBuilt()) return;
  step("Building the studio's page (vite)", () => {
    run(process.execPath, [path.join(root, "packages/studio/scripts/build-assets.mjs")]);
  });
}

function step(label, action) {
  const start = performance.now();
  process.stderr.write(`${label} ...\n`);
  action();
  process.stderr.write(`${label}: done in ${((performance.now() - start) / 1000).toFixed(1)} s\n`);
}
