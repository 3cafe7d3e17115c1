import { checkOptions } from "tinker-ts";
import type { RunOptions } from "./run-options.js";

/** The names of options, checked by the compiler against their type. */
export type OptionNames<T> = Readonly<Record<keyof T, true>>;

/** The names of the options of every loop. */
export const runOptionNames: OptionNames<RunOptions> = {
  service: true,
  model: true,
  folder: true,
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

/** Refuses unknown options and names the nearest known one. */
export function checkOptionNames(options: object, names: Readonly<Record<string, true>>): void {
  checkOptions(options, [names]);
}

/** The options with these names, for a loop inside another one. */
export function pickOptions<O extends object, K extends string>(
  options: O,
  names: Readonly<Record<K, true>>,
): Pick<O, K & keyof O> {
  const entries = Object.entries(options).filter(([name]) => Object.hasOwn(names, name));
  return Object.fromEntries(entries) as Pick<O, K & keyof O>;
}
