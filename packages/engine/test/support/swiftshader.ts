import { execFile, execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliDecompressSync } from "node:zlib";

const archive = findArchive();

/** Whether there is a driver of WebGPU that computes on the processor. */
export const hasSwiftShader = archive !== undefined;

/** Unpacks the driver. It is read when a process starts, so that only child processes can use it. */
export function unpackSwiftShader(folder: string): NodeJS.ProcessEnv {
  if (archive === undefined) throw new Error("there is no driver here");
  const input = brotliDecompressSync(readFileSync(archive));
  execFileSync("tar", ["-x", "-C", folder], { input });
  return {
    ...process.env,
    VK_ICD_FILENAMES: path.join(folder, "vk_swiftshader_icd.json"),
    LD_LIBRARY_PATH: folder,
  };
}

/** Runs a program of this folder and returns the JSON that it prints last. */
export async function runProgram<T>(
  name: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<T> {
  const lines = await runLines<T>(name, args, env);
  const last = lines.at(-1);
  if (last === undefined) throw new Error(`${name} printed nothing`);
  return last;
}

/** Runs a program of this folder and returns the JSON of every line that it prints. */
export async function runLines<T>(
  name: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<readonly T[]> {
  const script = fileURLToPath(new URL(name, import.meta.url));
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, [script, ...args], { env, maxBuffer: 1 << 26 });
  return stdout
    .trim()
    .split("\n")
    .map((line): T => JSON.parse(line));
}

function findArchive(): string | undefined {
  if (process.platform !== "linux" || process.arch !== "x64") return undefined;
  try {
    const main = createRequire(import.meta.url).resolve("@sparticuz/chromium");
    const root = main.slice(0, main.lastIndexOf("chromium") + "chromium".length);
    return path.join(root, "bin/swiftshader.tar.br");
  } catch {
    return undefined;
  }
}
