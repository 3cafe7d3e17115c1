import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { CliError } from "../errors/cli-error.js";

/** Who uploads, and where to. */
export interface HubLogin {
  readonly accessToken: string;
  readonly hubUrl: string;
}

/** Finds a Hugging Face token where its own tools keep it. */
export async function findLogin(
  given: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Promise<HubLogin> {
  const hubUrl = (env["HF_ENDPOINT"] || "https://huggingface.co").replace(/\/+$/, "");
  const token = given ?? (env["HF_TOKEN"] || (await storedToken(env)));
  if (token) return { accessToken: token.trim(), hubUrl };
  throw new CliError(
    "Not logged in to Hugging Face.",
    "Set HF_TOKEN, pass --hf-token, or run 'hf auth login'.",
  );
}

async function storedToken(env: Readonly<Record<string, string | undefined>>): Promise<string> {
  const home =
    env["HF_HOME"] ||
    path.join(env["XDG_CACHE_HOME"] || path.join(homedir(), ".cache"), "huggingface");
  const file = env["HF_TOKEN_PATH"] || path.join(home, "token");
  return readFile(file, "utf8").catch(() => "");
}
