import { mkdir, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { readVariable, type Environment } from "../runtime/environment.js";
import { readFolder } from "./read-folder.js";
import type { ReadTokenizerFile } from "./tokenizer-files.js";
import type { TokenizerId } from "./tokenizer-id.js";

/*
 * The cache that Python's huggingface_hub keeps: `models--org--name/refs/<revision>` holds a commit,
 * `models--org--name/snapshots/<commit>/` the files. Sharing it means that neither side downloads what
 * the other already has.
 */

/** The folder of Hugging Face's own files. */
export function hubHome(env: Environment): string {
  const caches = readVariable(env, "XDG_CACHE_HOME") ?? path.join(homedir(), ".cache");
  return readVariable(env, "HF_HOME") ?? path.join(caches, "huggingface");
}

/** Reads tokenizer files from the cache. */
export function readHubCache(tokenizer: TokenizerId, env: Environment): ReadTokenizerFile {
  const folder = repositoryFolder(tokenizer.id, env);
  return async (name) => {
    const revision = tokenizer.revision ?? "main";
    const commit = (await readFolder(path.join(folder, "refs"))(revision))?.trim() ?? revision;
    return readFolder(path.join(folder, "snapshots", commit))(name);
  };
}

/** Keeps a downloaded file for the next time, under the commit that it belongs to. */
export async function writeHubCache(
  tokenizer: TokenizerId,
  env: Environment,
  file: { readonly name: string; readonly commit: string; readonly text: string },
): Promise<void> {
  const folder = repositoryFolder(tokenizer.id, env);
  await writeWhole(path.join(folder, "snapshots", file.commit, file.name), file.text);
  const revision = tokenizer.revision ?? "main";
  if (revision !== file.commit) await writeWhole(path.join(folder, "refs", revision), file.commit);
}

/** Written beside and renamed, so that no other process ever sees half a file. */
async function writeWhole(target: string, text: string): Promise<void> {
  await mkdir(path.dirname(target), { recursive: true });
  const partial = `${target}.${crypto.randomUUID()}.part`;
  await writeFile(partial, text);
  await rename(partial, target);
}

function repositoryFolder(id: string, env: Environment): string {
  const cache = readVariable(env, "HF_HUB_CACHE") ?? path.join(hubHome(env), "hub");
  return path.join(cache, `models--${id.replaceAll("/", "--")}`);
}
