import { homedir } from "node:os";
import path from "node:path";
import { readTextIfPresent } from "../files/json.js";

/** Endpoint, cache folder and token of the hub. */
export interface HubSettings {
  readonly endpoint: string;
  readonly cacheFolder: string;
  readonly token: string | null;
  /** No network requests are made. */
  readonly offline: boolean;
}

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the variables that Hugging Face's own tools read, so that they share one cache and one login. */
export async function readHubSettings(env: Environment = process.env): Promise<HubSettings> {
  const cacheHome = env["XDG_CACHE_HOME"] || path.join(homedir(), ".cache");
  const home = expandHome(env["HF_HOME"] || path.join(cacheHome, "huggingface"));
  const cacheFolder = env["HF_HUB_CACHE"] || env["HUGGINGFACE_HUB_CACHE"] || path.join(home, "hub");
  return {
    endpoint: (env["HF_ENDPOINT"] || "https://huggingface.co").replace(/\/+$/, ""),
    cacheFolder: expandHome(cacheFolder),
    token: await readToken(env, expandHome(env["HF_TOKEN_PATH"] || path.join(home, "token"))),
    offline: isTrue(env["HF_HUB_OFFLINE"]) || isTrue(env["TRANSFORMERS_OFFLINE"]),
  };
}

async function readToken(env: Environment, tokenFile: string): Promise<string | null> {
  const given = env["HF_TOKEN"] || env["HUGGING_FACE_HUB_TOKEN"];
  if (given?.trim()) return given.trim();
  if (isTrue(env["HF_HUB_DISABLE_IMPLICIT_TOKEN"])) return null;
  return (await readTextIfPresent(tokenFile))?.trim() || null;
}

function isTrue(value: string | undefined): boolean {
  return ["1", "on", "yes", "true"].includes(value?.toLowerCase() ?? "");
}

function expandHome(folder: string): string {
  return folder === "~" || /^~[/\\]/.test(folder) ? path.join(homedir(), folder.slice(1)) : folder;
}
