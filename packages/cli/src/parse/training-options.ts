import { CliError } from "../errors/cli-error.js";
import type { OptionSpecs } from "./option-spec.js";

const output = {
  type: "string",
  short: "o",
  placeholder: "DIR",
  description: "Folder of the run; by default runs/NAME, by the name of the file",
} as const;

const maxFailedSteps = {
  type: "integer",
  min: 0,
  description: "End the run after N steps in a row with errors only; 0 never; 3 by default",
} as const;

/** Options of every kind of training. */
export const runOptions = {
  model: {
    type: "string",
    short: "m",
    placeholder: "NAME",
    values: ["models", "files"],
    required: true,
    description: "Base model to train",
  },
  load: {
    type: "string",
    placeholder: "PATH",
    values: ["checkpoints"],
    description: "Start from the weights of a checkpoint",
  },
  renderer: {
    type: "string",
    placeholder: "NAME",
    description: "Chat format, if not the model's recommended one",
  },
  maxSteps: { type: "integer", min: 1, description: "Maximum number of steps" },
  resume: {
    type: "flag",
    description: "Resume the run in the folder; short for --if-exists resume",
  },
  ifExists: {
    type: "string",
    choices: ["fail", "resume", "delete", "new"],
    description:
      "If the folder holds a run: fail (default), resume it, delete it, or use a new folder",
  },
  dryRun: { type: "flag", description: "Show the plan and train nothing" },
} as const satisfies OptionSpecs;

/** Further options of training on rows of data. */
export const rowOptions = {
  ...runOptions,
  eval: {
    type: "string",
    placeholder: "FILE",
    description: "Rows to evaluate on; they are not trained",
  },
  testSize: { type: "integer", min: 1, description: "Number of rows to hold out for evaluation" },
  lr: {
    type: "string",
    placeholder: "RATE",
    description: "Peak learning rate; by default the one recommended for the model",
  },
  batchSize: {
    type: "integer",
    min: 1,
    description: "Rows per step; by default up to 128, for 100 steps per epoch",
  },
  lrSchedule: {
    type: "string",
    choices: ["linear", "cosine", "constant"],
    default: "linear",
    description: "Learning rate schedule",
  },
  rank: { type: "integer", min: 1, default: 32, description: "Rank of the adapter" },
  epochs: {
    type: "integer",
    min: 1,
    description: "Passes over the data; by default 1, or as many as give 30 steps",
  },
  maxLength: { type: "integer", min: 2, description: "Cut longer rows to N tokens" },
  evalEvery: { type: "integer", min: 0, default: 10, description: "Steps between evaluations" },
  saveEvery: { type: "integer", min: 0, default: 20, description: "Steps between checkpoints" },
  seed: {
    type: "integer",
    default: 0,
    description: "Random seed for data order and initial weights",
  },
  skipBadRows: { type: "flag", description: "Skip bad rows and name them" },
  output,
} as const satisfies OptionSpecs;

/** Further options of training with a module, which has its own defaults. */
export const moduleOptions = {
  ...runOptions,
  rank: { type: "integer", min: 1, description: "Rank of the adapter; 32 by default" },
  saveEvery: { type: "integer", min: 0, description: "Steps between checkpoints; 20 by default" },
  seed: {
    type: "integer",
    default: 0,
    description: "Random seed for sampling and initial weights",
  },
  maxFailedSteps,
  output,
} as const satisfies OptionSpecs;

/** The value of `--lr`: a rate, or `auto` where that is possible. */
export function readRate(given: string): number;
export function readRate(given: string, kinds: { readonly auto: true }): number | "auto";
export function readRate(given: string, kinds?: { readonly auto: true }): number | "auto" {
  if (kinds?.auto && given === "auto") return given;
  const rate = Number(given);
  if (rate > 0 && Number.isFinite(rate)) return rate;
  const expected = kinds?.auto ? "auto or a positive number" : "a positive number";
  throw new CliError(`--lr: '${given}' is not ${expected}.`);
}
