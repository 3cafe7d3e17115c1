import { ArgumentError } from "tinker-ts";
import type { Recipe } from "./recipe.js";

/** A recipe as a list shows it. */
export interface RecipeEntry {
  /** What it is called by. */
  readonly name: string;
  /** What it does, in a line. */
  readonly summary: string;
  /** Loads the recipe itself. */
  readonly load: () => Promise<Recipe>;
}

/** Every recipe, easier ones first. Each is a file of its own, loaded when it is used. */
export const recipes: readonly RecipeEntry[] = [
  {
    name: "sums",
    summary: "Careless with sums becomes careful, by rewards alone",
    load: async () => (await import("./sums.js")).recipe,
  },
  {
    name: "guess-number",
    summary: "Finds a number in several turns, by the answers to its guesses",
    load: async () => (await import("./guess-number.js")).recipe,
  },
  {
    name: "calculator",
    summary: "Learns to ask a calculator instead of guessing",
    load: async () => (await import("./calculator.js")).recipe,
  },
  {
    name: "two-players",
    summary: "Learns a game of two by playing against itself",
    load: async () => (await import("./two-players.js")).recipe,
  },
  {
    name: "entropy",
    summary:
      "Keeps answers different from each other, where rewards alone would make them all the same",
    load: async () => (await import("./entropy.js")).recipe,
  },
  {
    name: "preference",
    summary: "A form of answers becomes the rule, by pairs of which one was preferred (DPO)",
    load: async () => (await import("./preference.js")).recipe,
  },
  {
    name: "judge",
    summary: "A reward model learns from comparisons; the model learns to please it",
    load: async () => (await import("./judge.js")).recipe,
  },
  {
    name: "teacher",
    summary: "A student comes near to a teacher, token by token of its own answers",
    load: async () => (await import("./teacher.js")).recipe,
  },
  {
    name: "instruction",
    summary: "An instruction is followed without being seen (prompt distillation)",
    load: async () => (await import("./instruction.js")).recipe,
  },
];

/** Loads a recipe by its name. */
export async function loadRecipe(name: string): Promise<Recipe> {
  const entry = recipes.find((one) => one.name === name);
  if (!entry) {
    const names = recipes.map((one) => one.name).join(", ");
    throw new ArgumentError(
      "name",
      `there is no recipe ${JSON.stringify(name)}; there are ${names}`,
    );
  }
  return entry.load();
}
