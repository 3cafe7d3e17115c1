#!/usr/bin/env node
// The command line is the package @tinker-ts/cli. This hands over to it, so that `npx tinker-ts` works
// wherever it is installed, and says how to get it elsewhere.
import { realpathSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const name = "@tinker-ts/cli";

/** The package beside this one, or in the project that the command is run in. */
function findCli() {
  for (const from of [import.meta.url, pathToFileURL(path.join(process.cwd(), "package.json"))]) {
    try {
      return createRequire(from).resolve(`${name}/package.json`);
    } catch {
      // Not there.
    }
  }
  return undefined;
}

const found = findCli();
if (found === undefined) {
  process.stderr.write(
    `The command line is a package of its own: npx ${name}, or npm install ${name}.\n`,
  );
  process.exitCode = 1;
} else {
  await import(
    pathToFileURL(path.join(realpathSync(path.dirname(found)), "bin/tinker-ts.js")).href
  );
}
