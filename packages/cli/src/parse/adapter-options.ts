import type { ArgumentSpecs, OptionSpecs } from "./option-spec.js";

/** Where an adapter comes from and goes to. */
export const adapterOptions = {
  output: {
    type: "string",
    short: "o",
    placeholder: "DIR",
    required: true,
    description: "The folder to write",
  },
  baseModel: {
    type: "string",
    placeholder: "PATH",
    values: ["models", "files"],
    description: "Folder or hub id of the base model, where the checkpoint's own name will not do",
  },
  force: { type: "flag", description: "Replaces a folder that is there" },
} as const satisfies OptionSpecs;

/** The adapter itself. */
export const adapterArguments = {
  source: {
    values: ["checkpoints", "files"],
    description: "tinker://RUN_ID/weights/NAME, or a folder with a PEFT adapter",
  },
} as const satisfies ArgumentSpecs;
