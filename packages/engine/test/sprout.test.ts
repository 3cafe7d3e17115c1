import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { embeddedModelFolder, Engine, findModel } from "@tinker-ts/engine";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";

describe("tinker-ts/sprout", () => {
  beforeAll(() => {
    vi.stubEnv("HF_HUB_OFFLINE", "1");
  });
  afterAll(() => {
    vi.unstubAllEnvs();
  });

  it("is found by its id without hub and cache", async () => {
    await using engine = await Engine.create({ threads: 1 });
    expect((await engine.loadModel("tinker-ts/sprout")).folder).toBe(embeddedModelFolder);
    expect(await findModel("tinker-ts/sprout")).toEqual({
      folder: embeddedModelFolder,
      commit: null,
    });
  });

  it("takes at most 10 MB", async () => {
    const files = await readdir(embeddedModelFolder);
    const sizes = await Promise.all(
      files.map(async (file) => (await stat(path.join(embeddedModelFolder, file))).size),
    );
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(10e6);
  });

  it("has the same description beside its weights as in the documentation", async () => {
    const card = await readFile(path.join(embeddedModelFolder, "README.md"), "utf8");
    const page = await readFile(new URL("../../../docs/sprout.md", import.meta.url), "utf8");
    expect(card).toBe(page);
  });
});
