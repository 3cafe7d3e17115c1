import type { SamplingParamsInput } from "tinker-ts";
import type { OptionSpecs, OptionValues } from "./option-spec.js";

/** Options of sampling. */
export const samplingOptions = {
  maxTokens: {
    type: "integer",
    min: 1,
    default: 128,
    description: "Maximum tokens",
  },
  temperature: {
    type: "number",
    min: 0,
    default: 1,
    description: "Sampling temperature; 0 takes the most probable token",
  },
  topK: {
    type: "integer",
    min: -1,
    default: -1,
    description: "Sample from the K most probable tokens; -1 for all",
  },
  topP: {
    type: "number",
    min: 0,
    max: 1,
    default: 1,
    description: "Sample from the most probable tokens with this total probability",
  },
  seed: { type: "integer", description: "Random seed for sampling" },
  stop: { type: "string", multiple: true, description: "Stop after this text" },
} as const satisfies OptionSpecs;

/** The sampling parameters of the options; `stopTokens` apply when no stop texts are given. */
export function samplingParams(
  options: OptionValues<typeof samplingOptions>,
  stopTokens: readonly number[] = [],
): SamplingParamsInput {
  const { maxTokens, temperature, topK, topP, seed, stop } = options;
  const stops = stop.length > 0 ? [...stop] : stopTokens.length > 0 ? [...stopTokens] : undefined;
  return {
    maxTokens,
    temperature,
    topK,
    topP,
    ...(seed === undefined ? {} : { seed }),
    ...(stops === undefined ? {} : { stop: stops }),
  };
}
