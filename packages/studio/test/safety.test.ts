import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeBrowser, StudioTab } from "./support/browser.js";
import { StudioServer } from "./support/server.js";

const mine = "tml-mine-0123456789";
const theirs = "tml-theirs-0123456789";
const refusals = [/status of 40[13]/];

/** What a page has and a test has not. */
interface PageGlobals {
  readonly Image: new () => EventTarget & { src: string };
}

let open: StudioServer;
let keyed: StudioServer;
beforeAll(async () => {
  [open, keyed] = await Promise.all([
    StudioServer.start(),
    StudioServer.start("--api-key", mine, "--api-key", theirs),
  ]);
  await Promise.all([open.train(1), keyed.train(1, keyed.client(mine))]);
}, 120_000);
afterAll(async () => {
  await closeBrowser();
  await Promise.all([open.close(), keyed.close()]);
});

/** A code as `tinker-ts studio` asks for it. */
async function codeFor(key: string): Promise<string> {
  const response = await fetch(`${keyed.url}/studio/api/code`, {
    method: "POST",
    headers: { "x-api-key": key, "x-tinker-studio": "1" },
  });
  expect(response.status).toBe(200);
  return ((await response.json()) as { code: string }).code;
}

describe("a server with keys", () => {
  it("3: shows the login to a page without a token, and answers none of its questions", async () => {
    const tab = await StudioTab.open(`${keyed.url}/studio`, { allowedFailures: refusals });
    await tab.page.getByLabel("Key").waitFor();
    expect(await tab.page.getByRole("row").count()).toBe(0);
    for (const route of ["runs", "machine", "events?topics=runs", "series?runs=x&keys=y"]) {
      const response = await fetch(`${keyed.url}/studio/api/${route}`);
      expect([route, response.status]).toEqual([route, 401]);
    }
    await tab.close();
  }, 60_000);

  it("4, 5: a code logs in once and leaves no trace in the address, cookies or storage", async () => {
    const code = await codeFor(mine);
    const tab = await StudioTab.open(`${keyed.url}/studio#code=${code}`);
    await tab.page
      .getByRole("link", { name: /sprout/ })
      .first()
      .waitFor();
    expect(tab.page.url()).not.toContain(code);
    expect(await tab.context.cookies()).toEqual([]);
    const kept = (await tab.page.evaluate(
      "({ local: Object.keys(localStorage), session: JSON.stringify(sessionStorage) })",
    )) as { local: string[]; session: string };
    expect(kept.local.filter((name) => !/theme|layout|pins|keys|studio/.test(name))).toEqual([]);
    expect(kept.session).not.toContain(mine);
    await tab.page.reload();
    await tab.page
      .getByRole("link", { name: /sprout/ })
      .first()
      .waitFor();
    await tab.close();

    const second = await StudioTab.open(`${keyed.url}/studio#code=${code}`, {
      allowedFailures: refusals,
    });
    await second.page.getByLabel("Key").waitFor();
    await second.close();
  }, 60_000);

  it("logs in by a key that is given in the form, and says when it is wrong", async () => {
    const tab = await StudioTab.open(`${keyed.url}/studio`, { allowedFailures: refusals });
    await tab.page.getByLabel("Key").fill("tml-wrong");
    await tab.page.getByRole("button", { name: "Log in" }).click();
    await tab.page.getByRole("alert").waitFor();
    await tab.page.getByLabel("Key").fill(mine);
    await tab.page.getByRole("button", { name: "Log in" }).click();
    await tab.page
      .getByRole("link", { name: /sprout/ })
      .first()
      .waitFor();
    await tab.close();
  }, 60_000);

  it("11: shows an owner nothing of another", async () => {
    const tab = await StudioTab.open(`${keyed.url}/studio#code=${await codeFor(theirs)}`);
    await tab.page.getByText("No runs yet").waitFor();
    const runs = await fetch(`${keyed.url}/studio/api/runs`, { headers: { "x-api-key": mine } });
    const [run] = ((await runs.json()) as { runs: { id: string }[] }).runs;
    const foreign = await fetch(`${keyed.url}/studio/api/runs/${encodeURIComponent(run!.id)}`, {
      headers: { "x-api-key": theirs },
    });
    expect(foreign.status).toBe(404);
    await tab.close();
  }, 60_000);
});

describe("a server without keys", () => {
  it("6: lets a page on another port neither read nor change anything", async () => {
    const other = createServer((_, response) => {
      response.setHeader("content-type", "text/html");
      response.end("<!doctype html><title>other</title>");
    });
    await new Promise<void>((resolve) => {
      other.listen(0, "127.0.0.1", resolve);
    });
    const { port } = other.address() as AddressInfo;
    const tab = await StudioTab.open(`http://127.0.0.1:${port}/`, { allowedFailures: [/./] });
    const attempts = await tab.page.evaluate(async (studio) => {
      const tries: Record<string, () => Promise<unknown>> = {
        read: () => fetch(`${studio}/studio/api/runs`).then((r) => r.text()),
        stream: () => fetch(`${studio}/studio/api/events?topics=runs`).then((r) => r.text()),
        change: () =>
          fetch(`${studio}/studio/api/views`, {
            method: "POST",
            headers: { "x-tinker-studio": "1" },
            body: "{}",
          }).then((r) => r.text()),
        simple: () =>
          fetch(`${studio}/studio/api/views`, { method: "POST", mode: "no-cors", body: "{}" }).then(
            (r) => r.text(),
          ),
        image: () =>
          new Promise((resolve, reject) => {
            const image = new (globalThis as unknown as PageGlobals).Image();
            image.addEventListener("load", resolve);
            image.addEventListener("error", () => reject(new Error("refused")));
            image.src = `${studio}/studio/icon.svg`;
          }),
      };
      const results: Record<string, string> = {};
      for (const [name, attempt] of Object.entries(tries)) {
        results[name] = await attempt().then(
          (value) => (value === "" ? "nothing" : "something"),
          () => "refused",
        );
      }
      return results;
    }, open.url);
    expect(attempts).toEqual({
      read: "refused",
      stream: "refused",
      change: "refused",
      simple: "refused",
      image: "refused",
    });
    await tab.context.close();
    other.close();
    const views = await fetch(`${open.url}/studio/api/views`);
    expect(((await views.json()) as { views: unknown[] }).views).toEqual([]);
  }, 60_000);

  it("7: refuses names that are not its own, for everything", async () => {
    const page = await (await fetch(`${open.url}/studio`)).text();
    const asset = /(?:src|href)="([^"]+\.js)"/.exec(page)?.[1] ?? "";
    const targets = ["/studio", new URL(asset, `${open.url}/studio/`).pathname];
    for (const path of [...targets, "/studio/api/runs", "/studio/api/events?topics=runs"]) {
      const status = await new Promise<number | undefined>((resolve, reject) => {
        const asked = httpRequest(`${open.url}${path}`, { headers: { host: "evil.example" } });
        asked.on("response", (response) => {
          resolve(response.statusCode);
          response.destroy();
        });
        asked.on("error", reject);
        asked.end();
      });
      expect([path, status]).toEqual([path, 403]);
    }
  }, 60_000);

  it("9, 10: shows names as text, with what cannot be seen as escapes", async () => {
    const evil = `<img src=x onerror="document.title='owned'">`;
    const runs = await (await fetch(`${open.url}/studio/api/runs`)).json();
    const [{ id }] = (runs as { runs: { id: string }[] }).runs as [{ id: string }];
    const label = await fetch(`${open.url}/studio/api/runs/${encodeURIComponent(id)}/label`, {
      method: "POST",
      headers: { "x-tinker-studio": "1", "content-type": "application/json" },
      body: JSON.stringify({
        name: `${evil}\u202Egnp\u200B${"long".repeat(30)}`,
        tags: [evil.slice(0, 40)],
      }),
    });
    expect(label.status, await label.text()).toBe(200);
    const tab = await StudioTab.open(`${open.url}/studio`);
    await tab.page.getByText("<img src=x").first().waitFor();
    expect(await tab.page.title()).not.toBe("owned");
    const text = await tab.page.locator("body").innerText();
    expect(text).not.toMatch(/[\u202E\u200B]/);
    expect(text).toContain("\\u202e");
    expect(await tab.isTooWide()).toBe(false);
    await tab.close();
  }, 60_000);
});
