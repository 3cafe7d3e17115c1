import path from "node:path";
import { readRunFolder } from "tinker-ts/run-log";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { baseModel, LiveServer } from "./support/live-server.js";

let server: LiveServer;

beforeAll(async () => {
  server = await LiveServer.start();
});
afterAll(() => server.stop());

describe("recipe", () => {
  it("lists all recipes", async () => {
    const { recipes } = await server.json<{ recipes: { name: string }[] }>(["recipe", "list"]);
    expect(recipes.map(({ name }) => name)).toContain("sums");
    const { out } = await server.run(["recipe", "list"]);
    expect(out).toMatch(/sums +Careless with sums/);
  });

  it("ends with an exit code for a failed check, and names it", async () => {
    const line = ["recipe", "run", "sums", "--model", baseModel, "--max-steps", "1"];
    const { code, out, err } = await server.run([...line, "--output", "short"]);
    expect(err).toMatch(/Before: \d+ % of new sums are right/);
    expect(out).toMatch(/sums: 1 of 2 checks fail/);
    expect(out).toMatch(/right after +\d+\.\d % +at least 90\.0 % +✗/);
    expect(code).toBe(1);
    const { attempts } = await readRunFolder(path.join(server.folder, "short/rewards"));
    expect(attempts).toBe(1);
  });

  it("suggests a similar recipe", async () => {
    const { code, err } = await server.run(["recipe", "run", "sum"]);
    expect(err).toBe(
      "Error: There is no recipe 'sum'. Did you mean 'sums'?\nSee them with 'tinker-ts recipe list'.\n",
    );
    expect(code).toBe(1);
  });
});
