import { rmSync } from "node:fs";
import { holds, loadRecipe, recipes, runRecipe } from "@tinker-ts/cookbook/recipes";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LocalPlace } from "./support/local-service.js";

const isFull = process.env["TINKER_TS_TEST_FULL"] !== undefined;
/** Recipes that other tests cover step by step are only loaded here. */
const short = ["guess-number", "instruction"];

describe("recipes", { timeout: isFull ? 900_000 : 120_000 }, () => {
  let place: LocalPlace;
  beforeAll(() => {
    place = new LocalPlace();
  });
  afterAll(() => place.close());

  it.each(recipes.map(({ name }) => name))("%s has a description", async (name) => {
    const entry = recipes.find((one) => one.name === name)!;
    const recipe = await loadRecipe(name);
    expect(recipe).toMatchObject({ name, summary: entry.summary });
    expect(recipe.teaches.length).toBeGreaterThan(60);
  });

  it.runIf(isFull).each(recipes.map(({ name }) => name))("%s holds", async (name) => {
    const folder = place.file(name);
    const result = await runRecipe(await loadRecipe(name), { service: place.service, folder });
    expect(result.failed).toEqual([]);
    rmSync(folder, { recursive: true, force: true });
  });

  it.each(short)("%s runs from one end to the other in a few steps", async (name) => {
    const said: string[] = [];
    const { checks, samplerPath } = await runRecipe(await loadRecipe(name), {
      service: place.service,
      folder: place.file(`${name}-short`),
      maxSteps: 1,
      say: (text) => said.push(text),
    });
    expect(checks.some(({ atLeast }) => atLeast !== undefined)).toBe(true);
    expect(checks.every(({ value }) => Number.isFinite(value))).toBe(true);
    expect(said.length).toBeGreaterThan(0);
    expect(samplerPath).toMatch(/^tinker:/);
  });

  it("lists the recipes for an unknown name", async () => {
    await expect(loadRecipe("cake")).rejects.toThrow(/no recipe "cake"; there are sums, /);
  });
});

it.each([
  [{ value: 0.9, atLeast: 0.9 }, true],
  [{ value: 0.89, atLeast: 0.9 }, false],
  [{ value: 0.3, atLeast: 0.2, atMost: 0.3 }, true],
  [{ value: 0.4, atLeast: 0.2, atMost: 0.3 }, false],
  [{ value: 5 }, true],
  [{ value: Number.NaN }, false],
])("a check of %j holds: %s", (check, expected) => {
  expect(holds({ what: "it", ...check })).toBe(expected);
});
