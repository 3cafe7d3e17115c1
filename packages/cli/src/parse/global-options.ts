import type { OptionSpecs, OptionValues } from "./option-spec.js";

/** Options of every command; they may stand before or after it. */
export const globalOptions = {
  format: {
    type: "string",
    short: "f",
    choices: ["table", "json"],
    default: "table",
    description: "Output format",
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
    description: "Key of the server (TINKER_API_KEY)",
  },
  timeout: {
    type: "integer",
    placeholder: "MS",
    min: 1,
    description: "Timeout of a request in milliseconds",
  },
  quiet: { type: "flag", short: "q", description: "Hide progress and notes" },
  debug: { type: "flag", description: "Show stack traces of errors" },
  help: { type: "flag", short: "h", description: "Show this help" },
} as const satisfies OptionSpecs;

/** Values of the options of every command. */
export type GlobalValues = OptionValues<typeof globalOptions>;
