import { CredentialError } from "../errors/tinker-error.js";
import { readVariable, type Environment } from "../runtime/environment.js";

/**
 * The default key of `~/.tinker/credentials.json`, which `tinker-ts auth login` and the Python program write; undefined
 * where there is none, and in browsers. Read at once and without an import, so that a missing key shows where a client is made.
 */
export function readStoredKey(env: Environment): string | undefined {
  const home = readVariable(env, "HOME") ?? readVariable(env, "USERPROFILE");
  const node = (globalThis as { process?: NodeJS.Process }).process;
  if (home === undefined || typeof node?.getBuiltinModule !== "function") return undefined;
  const file = `${home}/.tinker/credentials.json`;
  let text: string;
  try {
    text = node.getBuiltinModule("node:fs").readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw unreadable(file, (error as Error).message);
  }
  try {
    const { default: id, keys } = JSON.parse(text) as {
      readonly default?: string | null;
      readonly keys?: Readonly<Record<string, { readonly key?: unknown }>>;
    };
    const key = id && keys && Object.hasOwn(keys, id) ? keys[id]?.key : undefined;
    return typeof key === "string" && key !== "" ? key : undefined;
  } catch {
    throw unreadable(file, "it is not JSON of the expected form");
  }
}

/** The file holds keys, so that nothing of its content is part of the message. */
function unreadable(file: string, reason: string): CredentialError {
  return new CredentialError(
    `${file} cannot be read: ${reason}. Mend or delete it, or set TINKER_API_KEY.`,
  );
}
