// Asks the ordinary package clients whether there are newer versions of what this repository follows, and compares them
// with those that docs/parity.md was made from. Ends with 1 when something is behind, with 2 when it could not be asked.
//   npm run watch:official
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { root } from "./ready.mjs";

/** How the newest version of a package is asked for, and read from the answer. */
const clients = {
  npm: {
    command: (name) => ["npm", ["view", name, "version"]],
    read: (output) => output.trim().split("\n").at(-1),
  },
  pip: {
    command: (name) => ["pip", ["index", "versions", name, "--disable-pip-version-check"]],
    read: (output) => /\(([^)]+)\)/.exec(output)?.[1],
  },
};

const followed = JSON.parse(
  readFileSync(path.join(root, "packages/sdk/scripts/followed.json"), "utf8"),
);
const missing = new Set();
let isBehind = false;
let isUnknown = false;

for (const { what, package: name, from, version } of followed) {
  if (missing.has(from)) continue;
  const { command, read } = clients[from];
  const [program, args] = command(name);
  // Windows has these programs as scripts; no argument is from outside.
  const answer = spawnSync(program, args, {
    encoding: "utf8",
    shell: process.platform === "win32",
  });
  if (answer.error?.code === "ENOENT") {
    missing.add(from);
    console.log(`${program} is not installed; what it would ask for is skipped`);
    continue;
  }
  const newest = answer.status === 0 ? read(answer.stdout) : undefined;
  if (!newest || !/^\d+(\.\d+)*/.test(newest)) {
    isUnknown = true;
    const [reason = "no version in its answer"] = answer.stderr.trim().split("\n").slice(-1);
    console.log(`${what} (${name}): ${program} could not be asked: ${reason}`);
  } else if (isNewer(newest, version)) {
    isBehind = true;
    console.log(`${what} (${name}): ${newest} is out, ${version} is followed`);
  } else {
    console.log(`${what} (${name}): ${version} is the newest`);
  }
}
if (isBehind) console.log('CONTRIBUTING.md, "Following the official client", has the procedure.');
process.exitCode = isBehind ? 1 : isUnknown ? 2 : 0;

/** Whether a version is above another one, part by part. */
function isNewer(version, than) {
  const [parts, others] = [version, than].map((text) => text.split(/[.-]/).map(Number));
  for (let index = 0; index < Math.max(parts.length, others.length); index++) {
    const difference = (parts[index] || 0) - (others[index] || 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}
