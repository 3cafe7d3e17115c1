import type { ArgumentSpecs, OptionSpecs } from "./option-spec.js";

/** Where an adapter comes from and goes to. */
export const adapterOptions = {
  output: {
    type: "string",
    short: "o",
    placeholder: "DIR",
    required: true,
    description: "Folder to write",
  },
  baseModel: {
    type: "string",
    placeholder: "PATH",
    values: ["models", "files"],
    description: "Folder or hub id of the base model, if not the checkpoint's own name",
  },
  force: { type: "flag", description: "Replace an existing folder" },
} as const satisfies OptionSpecs;

/** The adapter itself. */
export const adapterArguments = {
  source: {
    values: ["checkpoints", "files"],
    description: "tinker://RUN_ID/weights/NAME, or a folder with a PEFT adapter",
  },
} as const satisfies ArgumentSpecs;
