import path from "node:path";
import { CliError } from "../errors/cli-error.js";
import { commandLine } from "./command-line.js";
import type { OptionSpecs } from "./option-spec.js";

/** What every kind of training takes. */
export const runOptions = {
  model: {
    type: "string",
    short: "m",
    placeholder: "NAME",
    values: ["models", "files"],
    required: true,
    description: "The model to train",
  },
  load: {
    type: "string",
    placeholder: "PATH",
    values: ["checkpoints"],
    description: "Begins with the weights of a checkpoint",
  },
  renderer: {
    type: "string",
    placeholder: "NAME",
    description: "The chat format, if not the model's recommended one",
  },
  maxSteps: { type: "integer", min: 1, description: "Ends after so many steps" },
  resume: { type: "flag", description: "Goes on with the run in that folder" },
} as const satisfies OptionSpecs;

/** What training on rows of data takes besides. */
export const rowOptions = {
  ...runOptions,
  lrSchedule: {
    type: "string",
    choices: ["linear", "cosine", "constant"],
    default: "linear",
    description: "How the rate changes",
  },
  rank: { type: "integer", min: 1, default: 32, description: "The rank of the adapter" },
  epochs: {
    type: "integer",
    min: 1,
    default: 1,
    description: "How often the data is gone through",
  },
  maxLength: { type: "integer", min: 2, description: "Cuts longer rows to so many tokens" },
  evalEvery: { type: "integer", min: 0, default: 10, description: "Steps between evaluations" },
  saveEvery: { type: "integer", min: 0, default: 20, description: "Steps between checkpoints" },
  seed: {
    type: "integer",
    default: 0,
    description: "Decides the order of rows and the first weights",
  },
  skipBadRows: { type: "flag", description: "Leaves rows out that cannot be used" },
  output: {
    type: "string",
    short: "o",
    placeholder: "DIR",
    description: "The run's folder; runs/NAME_OF_DATA by default",
  },
  dryRun: { type: "flag", description: "Shows what would be trained, and trains nothing" },
} as const satisfies OptionSpecs;

/** What training by a module takes besides; what is not given is the module's to say. */
export const moduleOptions = {
  ...runOptions,
  rank: { type: "integer", min: 1, description: "The rank of the adapter; 32 by default" },
  saveEvery: { type: "integer", min: 0, description: "Steps between checkpoints; 20 by default" },
  seed: {
    type: "integer",
    default: 0,
    description: "Decides what is sampled and the first weights",
  },
  output: {
    type: "string",
    short: "o",
    placeholder: "DIR",
    description: "The run's folder; runs/NAME_OF_MODULE by default",
  },
} as const satisfies OptionSpecs;

/** What `--lr` says: a rate, or `auto` where that is possible. */
export function readRate(given: string): number;
export function readRate(given: string, kinds: { readonly auto: true }): number | "auto";
export function readRate(given: string, kinds?: { readonly auto: true }): number | "auto" {
  if (kinds?.auto && given === "auto") return given;
  const rate = Number(given);
  if (rate > 0 && Number.isFinite(rate)) return rate;
  const wanted = kinds?.auto ? "neither auto nor a positive number" : "not a positive number";
  throw new CliError(`--lr: '${given}' is ${wanted}.`);
}

/** The folder of a run, as it was chosen or by the name of what it is trained on. */
export function runFolder(
  cwd: string,
  source: string,
  chosen: { readonly output?: string | undefined },
): string {
  const name = path.parse(source).name.replaceAll(":", "-");
  return path.resolve(cwd, chosen.output ?? path.join("runs", name));
}

/** The command that goes on with a run. */
export function resumeLine(
  words: readonly string[],
  specs: OptionSpecs,
  chosen: Readonly<Record<string, unknown>>,
  { cwd, folder }: { readonly cwd: string; readonly folder: string },
): string {
  const output = chosen["output"] ?? path.relative(cwd, folder);
  return `${commandLine(words, specs, { ...chosen, output, resume: false })} --resume`;
}
