import { readFile } from "node:fs/promises";
import path from "node:path";
import type { Tokenizer } from "@tinker-ts/hub";

/** The tokenizer and template of a model. */
export interface ModelText {
  readonly tokenizer: Tokenizer;
  /** Where the tokenizer was read. */
  readonly folder: string;
  /** Tokens at which the model ends an answer. */
  readonly ends: readonly number[];
}

/** Reads the tokenizer of a model and its end tokens. */
export async function loadModelText(folder: string): Promise<ModelText> {
  const { loadTokenizer } = await import("@tinker-ts/hub");
  const tokenizer = await loadTokenizer(folder);
  return { tokenizer, folder, ends: await endsOf(folder, tokenizer) };
}

async function endsOf(folder: string, tokenizer: Tokenizer): Promise<readonly number[]> {
  const configured = await configuredEnds(path.join(folder, "generation_config.json"));
  return [...new Set([...tokenizer.turnEnds, ...configured])];
}

/** The field `eos_token_id`, a number or several; other fields are sampling defaults. */
async function configuredEnds(file: string): Promise<readonly number[]> {
  const text = await readFile(file, "utf8").catch(() => null);
  if (text === null) return [];
  const { eos_token_id: ends } = JSON.parse(text) as { eos_token_id?: unknown };
  const list: unknown[] = Array.isArray(ends) ? ends : [ends];
  return list.filter((id) => typeof id === "number");
}
