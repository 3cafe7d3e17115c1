import { existsSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { CliError } from "../errors/cli-error.js";

/** Loads a module of the user and returns its default export, or one of another name. */
export async function loadModule(
  given: string,
  cwd: string,
  wanted: { readonly name: string; readonly example: string },
): Promise<unknown> {
  const file = path.resolve(cwd, given);
  if (!existsSync(file)) throw new CliError(`${file} does not exist.`);
  let loaded: Readonly<Record<string, unknown>>;
  try {
    loaded = (await import(pathToFileURL(file).href)) as Readonly<Record<string, unknown>>;
  } catch (cause) {
    throw new CliError(`${file} cannot be loaded: ${(cause as Error).message}`, hintFor(cause), {
      cause,
    });
  }
  const found = loaded["default"] ?? loaded[wanted.name];
  if (found !== undefined) return found;
  const names = Object.keys(loaded);
  throw new CliError(
    `${file} exports ${names.length === 0 ? "nothing" : `only ${names.join(", ")}`}.`,
    `It needs a default export, or one named ${wanted.name}: ${wanted.example}`,
  );
}

/** Says that what a module gives cannot be used, and why. */
export function refuseModule(cause: unknown): never {
  const text = cause instanceof Error ? cause.message : String(cause);
  throw new CliError(`The module cannot be used: ${text}`, undefined, { cause });
}

function hintFor(cause: unknown): string | undefined {
  const { code } = cause as { readonly code?: string };
  if (code !== "ERR_UNKNOWN_FILE_EXTENSION") return undefined;
  return "This version of Node.js reads no TypeScript: compile the module, or take Node.js 22.18 or newer.";
}
