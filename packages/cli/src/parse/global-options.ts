import type { OptionSpecs, OptionValues } from "./option-spec.js";

/** Options of every command; they may stand before or after it. */
export const globalOptions = {
  format: {
    type: "string",
    short: "f",
    choices: ["table", "json"],
    default: "table",
    description: "How results are printed",
  },
  json: { type: "flag", description: "Short for --format json" },
  baseUrl: {
    type: "string",
    placeholder: "URL",
    values: [],
    description: 'Server, or "local:" for the engine on this machine (TINKER_BASE_URL)',
  },
  apiKey: {
    type: "string",
    placeholder: "KEY",
    values: [],
    description: "The key of the server (TINKER_API_KEY)",
  },
  timeout: {
    type: "integer",
    placeholder: "MS",
    min: 1,
    description: "Gives a request up after so many milliseconds",
  },
  quiet: { type: "flag", short: "q", description: "No progress and no notes" },
  debug: { type: "flag", description: "Shows where errors come from" },
  help: { type: "flag", short: "h", description: "Shows this help" },
} as const satisfies OptionSpecs;

/** Values of the options of every command. */
export type GlobalValues = OptionValues<typeof globalOptions>;
