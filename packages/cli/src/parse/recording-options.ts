import path from "node:path";
import type { OptionSpecs } from "./option-spec.js";

/** What is kept of runs, for servers that are started here. */
export const recordingOptions = {
  capture: {
    type: "string",
    choices: ["sample", "all", "off"],
    default: "sample",
    description: "Training data and rollouts to keep for the studio",
  },
  logs: {
    type: "string",
    multiple: true,
    placeholder: "DIR",
    description: "Folder of run folders to show too, such as the Python cookbook's",
  },
} as const satisfies OptionSpecs;

/** Folders as they are meant where the command is given. */
export function folders(given: readonly string[], cwd: string): string[] {
  return given.map((folder) => path.resolve(cwd, folder));
}
