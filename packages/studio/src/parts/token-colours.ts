import type { StudioNumber, StudioTokens } from "tinker-ts/wire/studio";

/** The values that tokens can be coloured by. */
export type TokenColour = "weight" | "logprob" | "advantage" | "difference" | "entropy" | "none";

/** The choices, with their names. */
export const tokenColours: readonly { readonly value: TokenColour; readonly name: string }[] = [
  { value: "weight", name: "weight (trained or not)" },
  { value: "logprob", name: "logprob" },
  { value: "advantage", name: "advantage × ratio" },
  { value: "difference", name: "trainer − sampler" },
  { value: "entropy", name: "entropy" },
  { value: "none", name: "nothing" },
];

/** A class of tokens with the same look, for the legend. */
export interface Shade {
  readonly name: string;
  readonly text: string;
}

/** The choices that these tokens have values for. */
export function coloursFor(tokens: StudioTokens): readonly TokenColour[] {
  const has = (column: readonly unknown[] | null): boolean =>
    column?.some((value) => value !== null) ?? false;
  const all: TokenColour[] = [];
  if (has(tokens.weight)) all.push("weight");
  if (has(tokens.logprob) || has(tokens.samplerLogprob)) all.push("logprob");
  if (has(tokens.advantage)) all.push("advantage");
  if (has(tokens.logprob) && has(tokens.samplerLogprob)) all.push("difference");
  if (has(tokens.entropy)) all.push("entropy");
  return [...all, "none"];
}

/** The value of a token under a choice; null where there is none. */
export function tokenValue(tokens: StudioTokens, place: number, by: TokenColour): number | null {
  const trainer = at(tokens.logprob, place);
  const sampler = at(tokens.samplerLogprob, place);
  if (by === "weight") return at(tokens.weight, place);
  if (by === "logprob") return trainer ?? sampler;
  if (by === "entropy") return at(tokens.entropy, place);
  if (by === "difference") return trainer === null || sampler === null ? null : trainer - sampler;
  if (by === "advantage") {
    const advantage = at(tokens.advantage, place);
    return advantage === null ? null : advantage * ratioOf(trainer, sampler);
  }
  return null;
}

/** How much likelier the trainer finds a token than the sampler did. */
export function ratioOf(trainer: number | null, sampler: number | null): number {
  return trainer === null || sampler === null ? 1 : Math.exp(trainer - sampler);
}

/** The class of a token: a name for the style sheet, and its meaning. */
export function shadeOf(value: number | null, by: TokenColour): Shade {
  if (by === "none" || value === null)
    return { name: "none", text: by === "weight" ? "context" : "no value" };
  if (by === "weight") {
    if (value === 1) return { name: "trained", text: "weight 1, trained" };
    if (value === 0) return { name: "untrained", text: "weight 0, not trained" };
    if (value < 0) return { name: "against", text: "weight below 0, trained against" };
    return { name: "partly", text: value < 1 ? "weight between 0 and 1" : "weight above 1" };
  }
  if (by === "logprob") {
    if (value > -0.1) return { name: "sure", text: "logprob above −0.1" };
    if (value > -1) return { name: "low1", text: "−1 … −0.1" };
    if (value > -3) return { name: "low2", text: "−3 … −1" };
    return { name: "low3", text: "below −3" };
  }
  if (by === "entropy") {
    if (value < 0.1) return { name: "sure", text: "entropy below 0.1" };
    if (value < 1) return { name: "low1", text: "0.1 … 1" };
    return value < 2 ? { name: "low2", text: "1 … 2" } : { name: "low3", text: "above 2" };
  }
  const small = by === "difference" ? 0.01 : 0.001;
  const large = by === "difference" ? 0.2 : 1;
  if (Math.abs(value) < small) return { name: "sure", text: `about 0 (±${small})` };
  const size = Math.abs(value) < large ? 1 : 2;
  const range = size === 1 ? `${small} … ${large}` : `above ${large}`;
  return value > 0
    ? { name: `up${size}`, text: `+ ${range}` }
    : { name: `down${size}`, text: `− ${range}` };
}

function at(column: readonly (StudioNumber | null)[] | null, place: number): number | null {
  const value = column?.[place] ?? null;
  return value === null ? null : Number(value);
}
