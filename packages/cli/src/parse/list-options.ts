import type { OptionSpecs } from "./option-spec.js";

/** Options of every list. */
export const listOptions = {
  limit: { type: "integer", min: 0, default: 20, description: "How many to show; 0 shows all" },
  offset: { type: "integer", min: 0, default: 0, description: "How many to skip" },
} as const satisfies OptionSpecs;

/** Whose things to look at. */
export const scopeOptions = {
  accessScope: {
    type: "string",
    choices: ["owned", "accessible"],
    default: "owned",
    description: "Your own, or everything you may see",
  },
} as const satisfies OptionSpecs;
