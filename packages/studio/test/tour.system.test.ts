import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeBrowser, StudioTab } from "./support/browser.js";
import { StudioServer } from "./support/server.js";

let server: StudioServer;
let run = "";
beforeAll(async () => {
  server = await StudioServer.start();
  const training = await server.train(3);
  await training.saveWeightsForSampler("tour");
  await server.train(2);
  const { runs } = (await (await fetch(`${server.url}/studio/api/runs`)).json()) as {
    runs: { id: string }[];
  };
  run = encodeURIComponent(runs.at(-1)!.id);
}, 120_000);
afterAll(async () => {
  await closeBrowser();
  await server.close();
});

/** Every screen, with a text that it shows. */
const screens = (): readonly (readonly [string, RegExp])[] => [
  ["", /sprout/],
  [`/runs/${run}`, /nll/],
  [`/runs/${run}?tab=rollouts`, /rollout/i],
  [`/runs/${run}?tab=data`, /trained/i],
  [`/runs/${run}?tab=log`, /log/i],
  [`/runs/${run}?tab=config`, /rank/],
  [`/runs/${run}?tab=files`, /checkpoint|file/i],
  [`/compare?runs=${run}`, /nll/],
  ["/playground", /sprout/],
  ["/checkpoints", /tour/],
  ["/machine", /memory/i],
];

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
const views = [
  { name: "wide and light", width: 1280, height: 800, theme: "light" },
  { name: "wide and dark", width: 1280, height: 800, theme: "dark" },
  { name: "on a phone", width: 390, height: 844, theme: "light" },
] as const;

describe.each(isFull ? views : views.slice(0, 1))("every screen, $name,", (view) => {
  it("has no errors, foreign requests, axe violations or sideways scrolling", async () => {
    const wrong: unknown[] = [];
    for (const [path, shown] of screens()) {
      const tab = await StudioTab.open(`${server.url}/studio${path}`, view);
      await expect
        .poll(() => tab.page.locator("main").innerText(), { timeout: 20_000, message: path })
        .toMatch(shown);
      if (await tab.isTooWide()) wrong.push([path, "moves sideways"]);
      const cut = await tab.page.evaluate(
        `[...document.querySelectorAll(".cards")].filter((table) => table.scrollWidth > table.parentElement.clientWidth).length`,
      );
      if (cut !== 0) wrong.push([path, `${String(cut)} lists are cut`]);
      for (const found of await tab.violations()) wrong.push([path, found]);
      const nameless = await tab.page
        .locator("table:not(:has(caption), [aria-label], [aria-labelledby])")
        .count();
      if (nameless > 0) wrong.push([path, `${nameless} tables without a name`]);
      await tab.close();
    }
    expect(wrong).toEqual([]);
  }, 120_000);
});

describe.runIf(isFull)("looks", () => {
  const colours = (tab: StudioTab): Promise<string> =>
    tab.page.evaluate("getComputedStyle(document.body).backgroundColor");
  const brightness = (colour: string): number => Number(/\d+/.exec(colour)?.[0]);

  it("the theme follows the system, and can be fixed for good", async () => {
    const tab = await StudioTab.open(`${server.url}/studio`, { theme: "dark" });
    await tab.page.locator("[data-run]").first().waitFor();
    const shine = async (): Promise<number> => brightness(await colours(tab));
    expect(await shine()).toBeLessThan(60);
    await tab.page.emulateMedia({ colorScheme: "light" });
    await expect.poll(shine).toBeGreaterThan(200);
    // Three states: system, light, dark.
    const theme = tab.page.getByRole("button", { name: /^Theme/ });
    await theme.click();
    await tab.page.getByRole("button", { name: "Theme: light" }).waitFor();
    await tab.page.emulateMedia({ colorScheme: "dark" });
    expect(await shine()).toBeGreaterThan(200);
    await theme.click();
    await tab.page.getByRole("button", { name: "Theme: dark" }).waitFor();
    await tab.page.emulateMedia({ colorScheme: "light" });
    expect(await shine()).toBeLessThan(60);
    await tab.page.reload();
    await tab.page.locator("[data-run]").first().waitFor();
    expect(await shine()).toBeLessThan(60);
    expect(await tab.page.evaluate("Object.keys(localStorage)")).toEqual([
      "tinker-ts.studio.theme",
    ]);
    await theme.click();
    await expect.poll(shine).toBeGreaterThan(200);
    await tab.close();
  }, 60_000);

  it("nothing moves with reduced motion", async () => {
    const moving = `[...document.getAnimations()].filter((one) =>
      one.effect.getComputedTiming().duration > 1).length`;
    for (const [path] of screens()) {
      const tab = await StudioTab.open(`${server.url}/studio${path}`);
      await tab.page.locator("main").waitFor();
      expect([path, await tab.page.evaluate(moving)]).toEqual([path, 0]);
      await tab.close();
    }
  }, 90_000);

  it("the focus is visible, and every button and link can have it", async () => {
    for (const [path, shown] of screens()) {
      const tab = await StudioTab.open(`${server.url}/studio${path}`);
      await expect.poll(() => tab.page.locator("main").innerText()).toMatch(shown);
      const focusable = await tab.page.evaluate(
        `[...document.querySelectorAll("a[href],button:not([disabled]),input:not([disabled]),select,textarea,summary")]
          .filter((one) => one.checkVisibility({ visibilityProperty: true }) && one.tabIndex >= 0).length`,
      );
      const seen = new Set<string>();
      for (let press = 0; press < Number(focusable) + 12; press++) {
        await tab.page.keyboard.press("Tab");
        const found = (await tab.page.evaluate(`(() => {
          const one = document.activeElement;
          if (!one || one === document.body) return null;
          const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(one);
          const isSeen = (outlineStyle !== "none" && outlineWidth !== "0px") || boxShadow !== "none";
          one.dataset.place ??= String(document.querySelectorAll("[data-place]").length);
          return [one.dataset.place, isSeen, one.outerHTML.slice(0, 120)];
        })()`)) as [string, boolean, string] | null;
        if (!found) continue;
        seen.add(found[0]);
        expect([path, found[1], found[2]]).toEqual([path, true, found[2]]);
      }
      expect([path, seen.size]).toEqual([path, expect.any(Number)]);
      expect(seen.size).toBeGreaterThanOrEqual(Number(focusable));
      await tab.close();
    }
  }, 180_000);
});

describe("the keyboard", () => {
  it("goes to every screen, lists its keys, and opens a run", async () => {
    const tab = await StudioTab.open(`${server.url}/studio`);
    await tab.page
      .getByRole("link", { name: /sprout/ })
      .first()
      .waitFor();
    const goes = { c: "compare", p: "playground", k: "checkpoints", m: "machine", r: "" };
    for (const [key, path] of Object.entries(goes)) {
      await tab.page.keyboard.press("g");
      await tab.page.keyboard.press(key);
      await expect
        .poll(() => new URL(tab.page.url()).pathname.replace(/\/$/, ""))
        .toBe(`/studio${path && `/${path}`}`);
    }
    await tab.page.keyboard.press("?");
    await tab.page.getByRole("dialog").waitFor();
    expect(await tab.violations()).toEqual([]);
    await tab.page.keyboard.press("Escape");
    await tab.page.getByRole("dialog").waitFor({ state: "detached" });
    await tab.page.locator("[data-run]").first().waitFor();
    await tab.page.keyboard.press("j");
    await tab.page.keyboard.press("Enter");
    await expect.poll(() => new URL(tab.page.url()).pathname).toMatch(/\/runs\//);
    await tab.close();
  }, 60_000);

  it("moves in a list as soon as it is shown", async () => {
    const tab = await StudioTab.open(`${server.url}/studio/machine`);
    await tab.page.getByRole("heading", { name: "Memory" }).waitFor();
    await tab.page.evaluate(`new MutationObserver((_, observer) => {
      if (!document.querySelector("[data-run]")) return;
      observer.disconnect();
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
    }).observe(document.body, { childList: true, subtree: true })`);
    await tab.page.getByRole("link", { name: "Runs" }).click();
    await tab.page.locator("[data-run].active").waitFor();
    await tab.close();
  }, 60_000);
});
