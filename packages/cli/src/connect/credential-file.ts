import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { CliError } from "../errors/cli-error.js";

/** A key as the file has it; a generated one was made for a single machine. */
export interface StoredKey {
  readonly type: "manual" | "generated";
  readonly key: string;
  readonly name: string;
  readonly note?: string | null;
  readonly details?: unknown;
}

/** What the file holds, in the form that the Python program reads and writes. */
interface StoredCredentials {
  readonly version: 1;
  readonly default?: string | null;
  readonly keys: Readonly<Record<string, StoredKey>>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Where keys are stored. */
export function credentialFile(env: Environment): string {
  const home = env["HOME"] || env["USERPROFILE"];
  if (home) return path.join(home, ".tinker", "credentials.json");
  throw new CliError("HOME is not set.", "Keys are stored in ~/.tinker/credentials.json.");
}

/** Whether there may be a stored key; looked at without reading it. */
export function mayHaveKey(env: Environment): boolean {
  return Boolean(env["HOME"] || env["USERPROFILE"]) && existsSync(credentialFile(env));
}

/** The default key and its id; undefined when there is none. */
export async function readDefaultKey(
  env: Environment,
): Promise<(StoredKey & { readonly id: string }) | undefined> {
  if (!mayHaveKey(env)) return undefined;
  const { default: id, keys } = await read(credentialFile(env));
  return id && Object.hasOwn(keys, id) ? { ...keys[id]!, id } : undefined;
}

/** Stores a key and makes it the default. */
export async function storeKey(env: Environment, id: string, key: StoredKey): Promise<void> {
  const file = credentialFile(env);
  const { keys } = await read(file);
  await write(file, { version: 1, default: id, keys: { ...keys, [id]: key } });
}

/** Removes a key, and the default with it when it is that. */
export async function removeKey(env: Environment, id: string): Promise<void> {
  const file = credentialFile(env);
  const stored = await read(file);
  const { [id]: _removed, ...keys } = stored.keys;
  const isDefault = stored.default === id;
  await write(file, { version: 1, ...(isDefault ? {} : { default: stored.default }), keys });
}

async function read(file: string): Promise<StoredCredentials> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { version: 1, keys: {} };
    throw new CliError(`${file} cannot be read.`, (error as Error).message);
  }
  try {
    const stored = JSON.parse(text) as StoredCredentials;
    if (stored.version === 1 && typeof stored.keys === "object") return stored;
  } catch {
    // Reported below; the file holds keys, so that nothing of it is shown.
  }
  throw new CliError(`${file} is not of the expected form.`, "Mend or delete it.");
}

/** Written whole and renamed, for its owner alone. */
async function write(file: string, credentials: StoredCredentials): Promise<void> {
  const folder = path.dirname(file);
  if (!(await stat(folder).catch(() => undefined))) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await chmod(folder, 0o700);
  }
  const temporary = path.join(folder, `.credentials.json.${randomUUID()}`);
  try {
    await writeFile(temporary, JSON.stringify(credentials, null, 2), { mode: 0o600 });
    await chmod(temporary, 0o600);
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
