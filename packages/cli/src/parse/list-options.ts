import type { OptionSpecs } from "./option-spec.js";

/** Options of every list. */
export const listOptions = {
  limit: { type: "integer", min: 0, default: 20, description: "Number to show; 0 for all" },
  offset: { type: "integer", min: 0, default: 0, description: "Number to skip" },
} as const satisfies OptionSpecs;

/** Own or accessible objects. */
export const scopeOptions = {
  accessScope: {
    type: "string",
    choices: ["owned", "accessible"],
    default: "owned",
    description: "Your own, or all that are accessible",
  },
} as const satisfies OptionSpecs;
