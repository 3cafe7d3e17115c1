import type { SamplingParamsInput } from "tinker-ts";
import type { OptionSpecs, OptionValues } from "./option-spec.js";

/** How tokens are chosen. */
export const samplingOptions = {
  maxTokens: {
    type: "integer",
    min: 1,
    default: 128,
    description: "Longest continuation in tokens",
  },
  temperature: {
    type: "number",
    min: 0,
    default: 1,
    description: "0 always takes the most probable token",
  },
  topK: { type: "integer", min: -1, default: -1, description: "Only the K most probable; -1: all" },
  topP: {
    type: "number",
    min: 0,
    max: 1,
    default: 1,
    description: "Only the most probable ones that make up this share",
  },
  seed: { type: "integer", description: "Makes the result repeatable" },
  stop: { type: "string", multiple: true, description: "Ends the continuation after this text" },
} as const satisfies OptionSpecs;

/** The parameters that the options stand for; `stopTokens` apply when no texts to stop at are given. */
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
