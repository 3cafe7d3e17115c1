import { readFile } from "node:fs/promises";
import path from "node:path";
import { CliError } from "../errors/cli-error.js";

/** What the command line needs to know of a PEFT adapter before it is read. */
export interface AdapterConfig {
  readonly rank: number;
  /** The base model that it names, if it does. */
  readonly base: string | undefined;
}

/** Reads the `adapter_config.json` of a folder. */
export async function readAdapterConfig(folder: string): Promise<AdapterConfig> {
  const text = await readFile(path.join(folder, "adapter_config.json"), "utf8").catch(
    (cause: unknown) => {
      throw new CliError(
        `${folder} has no adapter_config.json.`,
        "Give the folder of a PEFT adapter.",
        { cause },
      );
    },
  );
  const { r: rank, base_model_name_or_path: base } = parse(text);
  if (typeof rank !== "number") throw notAnAdapter("it has no rank (r)");
  return { rank, base: typeof base === "string" && base !== "" ? base : undefined };
}

function parse(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw notAnAdapter("it is not JSON", cause);
  }
  if (typeof value !== "object" || value === null) throw notAnAdapter("it is not an object");
  return value as Readonly<Record<string, unknown>>;
}

function notAnAdapter(reason: string, cause?: unknown): CliError {
  return new CliError(
    `adapter_config.json cannot be used: ${reason}.`,
    "Give the folder of a PEFT adapter.",
    { cause },
  );
}
