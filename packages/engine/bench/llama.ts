import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { ModelConfig } from "@tinker-ts/engine";
import { writeGguf } from "./gguf.js";
import { startLineProcess, type LineProcess } from "./line-process.js";

/** Where node-llama-cpp is: installed in the folder of the variable LLAMA, or beside the engine. */
export function llamaEntry(): string | undefined {
  const folder = process.env["LLAMA"] ?? path.dirname(fileURLToPath(import.meta.url));
  try {
    const require = createRequire(path.join(folder, "from-here.js"));
    return pathToFileURL(require.resolve("node-llama-cpp")).href;
  } catch {
    return undefined;
  }
}

/** llama.cpp in a process of its own, with a model of the same shape in q8_0; see llama-decode.mjs for what it is asked. */
export async function startLlama(entry: string, config: ModelConfig): Promise<LineProcess> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "tinker-ts-gguf-"));
  const file = path.join(folder, "model.gguf");
  try {
    await writeGguf(file, config);
    const script = fileURLToPath(new URL("llama-decode.mjs", import.meta.url));
    return await startLineProcess(process.execPath, [script, entry, file]);
  } finally {
    // What was read stays mapped.
    await rm(folder, { recursive: true });
  }
}
