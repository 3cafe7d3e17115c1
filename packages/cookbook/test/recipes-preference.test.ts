import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { loadRecipe, runRecipe } from "@tinker-ts/cookbook/recipes";
import { ServiceClient } from "tinker-ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";

describe("recipes of preferences and teachers", { timeout: 600_000 }, () => {
  const folder = mkdtempSync(path.join(tmpdir(), "recipes-"));
  let service: ServiceClient;
  beforeAll(() => {
    process.env["TINKER_TS_DATA_DIR"] = path.join(folder, "data");
    service = new ServiceClient({ baseUrl: "local:" });
  });
  afterAll(async () => {
    await service.close();
    rmSync(folder, { recursive: true, force: true });
  });

  // The others do in a step what the tests of their loops do.
  const names = isFull ? ["preference", "judge", "teacher", "instruction"] : ["instruction"];
  it.each(names)(isFull ? "%s does what it says" : "%s can be seen at work", async (name) => {
    const recipe = await loadRecipe(name);
    expect(recipe.name).toBe(name);
    const result = await runRecipe(recipe, {
      service,
      folder: path.join(folder, name),
      ...(isFull ? {} : { maxSteps: 1 }),
    });
    if (isFull) expect(result.failed).toEqual([]);
    expect(result.samplerPath).toMatch(/^tinker:/);
    for (const { value, what } of result.checks) expect(Number.isFinite(value), what).toBe(true);
  });
});
