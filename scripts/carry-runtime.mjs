// Puts ONNX Runtime's binding into the engine's folder, so that the packed engine carries it.
//
// onnxruntime-node has an install script that downloads GPU libraries on some machines; where it cannot, the whole
// `npm install` of a user fails. The files that the engine needs are inside that package already, so the engine
// carries them itself and depends on no script. A clone carries those of its own platform; `--all` is for publishing.
import { copyFileSync, linkSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "./ready.mjs";

/** Where the engine finds them. */
export const carriedFolder = () => path.join(root, "packages/engine/onnxruntime");

/** Links the files of this platform, or of all; what is there already is replaced. */
export function carryRuntime({ all = false } = {}) {
  const target = carriedFolder();
  const require = createRequire(path.join(root, "packages/engine/package.json"));
  const source = path.dirname(require.resolve("onnxruntime-node/package.json"));
  rmSync(target, { recursive: true, force: true });
  const here = `${process.platform}/${process.arch}`;
  for (const file of readdirSync(source, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue;
    const name = path.relative(source, path.join(file.parentPath, file.name)).replaceAll("\\", "/");
    const platform = /^bin\/[^/]+\/([^/]+\/[^/]+)\//.exec(name)?.[1];
    const isWanted = platform
      ? (all || platform === here) && !/\.\d+\.\d+\.\d+\.dylib$/.test(name) // the same file twice
      : /^dist\/.*\.js$/.test(name);
    if (isWanted) place(path.join(source, name), path.join(target, name));
  }
  const { version, license, author } = require("onnxruntime-node/package.json");
  const origin = { name: "onnxruntime-node", version, license, author, type: "commonjs" };
  writeFileSync(path.join(target, "package.json"), `${JSON.stringify(origin, null, 2)}\n`);
}

function place(source, file) {
  mkdirSync(path.dirname(file), { recursive: true });
  try {
    linkSync(source, file); // takes no space
  } catch {
    copyFileSync(source, file);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  carryRuntime({ all: process.argv.includes("--all") });
}
