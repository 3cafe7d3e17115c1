import { ArgumentError, checkOptions } from "tinker-ts";
import type { RunOptions } from "./run-options.js";

/** The names of options and which of them are needed, checked by the compiler against their type. */
export type OptionNames<T> = {
  readonly [K in keyof T]-?: object extends Pick<T, K> ? true : "needed";
};

/** The names of the options of every loop. */
export const runOptionNames: OptionNames<RunOptions> = {
  service: "needed",
  model: "needed",
  folder: "needed",
  ifExists: true,
  recipeName: true,
  loadCheckpointPath: true,
  loraRank: true,
  adamParams: true,
  maxSteps: true,
  evalEvery: true,
  evaluators: true,
  seed: true,
  sinks: true,
  onProgress: true,
  signal: true,
  saveEvery: true,
  saveEveryTokens: true,
  saveEverySeconds: true,
  ttlSeconds: true,
  rollingSaveEvery: true,
  rollingTtlSeconds: true,
  asyncPeriodicSaves: true,
};

/** Refuses unknown options, names the nearest known one, and refuses that a needed one is missing. */
export function checkOptionNames(
  options: object,
  names: Readonly<Record<string, true | "needed">>,
): void {
  checkOptions(options, [names]);
  const given = new Map(Object.entries(options));
  for (const [name, kind] of Object.entries(names)) {
    if (kind === "needed" && given.get(name) === undefined) {
      throw new ArgumentError(name, "is missing");
    }
  }
  const model = given.get("model");
  if (typeof model === "string" && model.startsWith("tinker://")) {
    throw new ArgumentError(
      "model",
      `${model} is a checkpoint; pass it as loadCheckpointPath, and the name of its base model as model`,
    );
  }
}

/** The options with these names, for a loop inside another one. */
export function pickOptions<O extends object, K extends string>(
  options: O,
  names: Readonly<Record<K, true | "needed">>,
): Pick<O, K & keyof O> {
  const entries = Object.entries(options).filter(([name]) => Object.hasOwn(names, name));
  return Object.fromEntries(entries) as Pick<O, K & keyof O>;
}
