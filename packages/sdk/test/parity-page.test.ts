import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { renderParityPage } from "../scripts/parity-page.js";

it("docs/parity.md says what the schemas say", () => {
  const page = readFileSync(new URL("../../../docs/parity.md", import.meta.url), "utf8");
  expect(page, "run `npm run generate:parity -w packages/sdk`").toBe(renderParityPage());
});
