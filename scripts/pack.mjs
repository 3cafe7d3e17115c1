// Packs the packages as they are published, and prints the files it made.
//   npm run pack -- <folder> [--all]
// The engine carries the native part of this platform, with --all that of every platform.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { bundleForNode } from "../packages/sdk/scripts/bundle-for-node.mjs";
import { carryRuntime } from "./carry-runtime.mjs";
import { root } from "./ready.mjs";

const [destination] = process.argv.slice(2).filter((word) => !word.startsWith("--"));
if (destination === undefined) {
  console.error("Name the folder for the packages: npm run pack -- <folder> [--all]");
  process.exit(2);
}
mkdirSync(destination, { recursive: true });
carryRuntime({ all: process.argv.includes("--all") });
const copy = mkdtempSync(path.join(tmpdir(), "tinker-ts-pack-"));
try {
  const folders = [];
  for (const name of readdirSync(path.join(root, "packages"))) {
    const folder = path.join(root, "packages", name);
    const manifest = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
    if (manifest.private) continue;
    folders.push(name === "sdk" ? await bundledCopy(folder, manifest) : folder);
  }
  pack(folders).forEach((file) => console.log(file));
} finally {
  rmSync(copy, { recursive: true, force: true });
}

async function bundledCopy(folder, { files }) {
  const names = ["package.json", "README.md", "LICENSE", ...files];
  for (const name of names.filter((file) => !file.startsWith("!"))) {
    cpSync(path.join(folder, name), path.join(copy, name), { recursive: true });
  }
  await bundleForNode(copy);
  return copy;
}

function pack(folders) {
  const npm = process.env.npm_execpath;
  const [command, ...prefix] = npm ? [process.execPath, npm] : ["npm"];
  const args = ["pack", "--json", "--loglevel=error", "--pack-destination", destination];
  const output = execFileSync(command, [...prefix, ...args, ...folders], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  return JSON.parse(output).map(({ filename }) => path.resolve(destination, filename));
}
