import { expect, it } from "vitest";
import { bundleForBrowser, maxBrowserBytes } from "./support/browser-bundle.js";

it("the client loads in a browser: no Node modules, small size", async () => {
  const { code, gzipBytes, warnings } = await bundleForBrowser();
  expect(warnings).toEqual([]);
  expect(code).not.toMatch(/["'`]node:/);
  expect(gzipBytes).toBeGreaterThan(maxBrowserBytes / 4);
  expect(gzipBytes).toBeLessThan(maxBrowserBytes);
}, 60_000);
