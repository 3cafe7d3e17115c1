// Packs every package and checks the files as npm would install them: entry points that exist (publint) and declarations
// that TypeScript resolves (attw), and has npm publish them but for the upload. Part of `npm run release:check`.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { binary, root } from "./ready.mjs";

const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-check-"));
try {
  const pack = [path.join(root, "scripts/pack.mjs"), folder];
  const output = execFileSync(process.execPath, pack, { encoding: "utf8" });
  for (const file of output.trim().split("\n")) {
    check("publint", "src/cli.js", [file, "--strict"]);
    // All packages are ES modules; CommonJS loads them with require() from Node 20.19 on.
    check("@arethetypeswrong/cli", "dist/index.js", [file, "--profile", "esm-only", "--quiet"]);
    npm("publish", file, "--dry-run", "--offline", "--access", "public");
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function check(name, file, args) {
  execFileSync(process.execPath, [binary(name, file), ...args], { stdio: "inherit" });
}

function npm(...args) {
  const npmScript = process.env.npm_execpath;
  const [command, ...prefix] = npmScript ? [process.execPath, npmScript] : ["npm"];
  execFileSync(command, [...prefix, ...args, "--loglevel=error"], { stdio: "inherit" });
}
