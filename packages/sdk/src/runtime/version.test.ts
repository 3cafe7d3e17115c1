import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { packageVersion } from "./version.js";

it("the version sent to servers is that of the package", () => {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  expect(packageVersion).toBe((JSON.parse(manifest) as { version: string }).version);
});
