import { APIConnectionError, statusError } from "../errors/api-error.js";
import { readSwitch, readVariable, type Environment } from "../runtime/environment.js";
import { hubHome, writeHubCache } from "./hub-cache.js";
import { readFolder } from "./read-folder.js";
import type { ReadTokenizerFile } from "./tokenizer-files.js";
import type { TokenizerId } from "./tokenizer-id.js";

const defaultHub = "https://huggingface.co";
const downloadTimeoutMs = 300_000;

/** Whether the hub may be asked. */
export function isHubAllowed(env: Environment): boolean {
  return !readSwitch(env, "HF_HUB_OFFLINE", false);
}

/** Downloads tokenizer files from the hub and keeps them in the cache. */
export function downloadFromHub(tokenizer: TokenizerId, env: Environment): ReadTokenizerFile {
  const hub = readVariable(env, "HF_ENDPOINT") ?? defaultHub;
  const revision = tokenizer.revision ?? "main";
  return async (name) => {
    if (!/^[\w.-]+(?:\/[\w.-]+)?$/.test(tokenizer.id)) return undefined;
    const url = `${hub}/${tokenizer.id}/resolve/${revision}/${name}`;
    const response = await request(url, await hubToken(env));
    if (response.status === 404) return undefined;
    const text = await response.text();
    if (!response.ok) {
      throw statusError(response.status, { body: text, request: { method: "GET", url } });
    }
    const commit = response.headers.get("x-repo-commit") ?? tokenizer.revision;
    if (commit && /^\w+$/.test(commit)) {
      // A cache that cannot be written only costs another download.
      await writeHubCache(tokenizer, env, { name, commit, text }).catch(() => {});
    }
    return text;
  };
}

async function request(url: string, token: string | undefined): Promise<Response> {
  try {
    return await fetch(url, {
      headers: token ? { authorization: `Bearer ${token}` } : {},
      signal: AbortSignal.timeout(downloadTimeoutMs),
    });
  } catch (cause) {
    throw new APIConnectionError(`Could not download ${url}.`, {
      cause,
      request: { method: "GET", url },
    });
  }
}

async function hubToken(env: Environment): Promise<string | undefined> {
  const saved = async () => (await readFolder(hubHome(env))("token"))?.trim();
  return readVariable(env, "HF_TOKEN") ?? (await saved());
}
