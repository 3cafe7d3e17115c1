import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import type { TrainingClient } from "tinker-ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeBrowser, StudioTab } from "./support/browser.js";
import { logLines } from "./support/log-lines.js";
import { StudioServer } from "./support/server.js";

const mine = "tml-mine-0123456789";
const theirs = "tml-theirs-0123456789";
const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
const refusals = [/status of 40[13]/];

interface PageElement extends EventTarget {
  name?: string;
  submit?: () => void;
}

interface PageDocument {
  readonly createElement: (name: string) => PageElement;
  readonly body: { readonly append: (element: PageElement) => void };
}

/** Globals of a page that tests do not have. */
interface PageGlobals {
  readonly Image: new () => EventTarget & { src: string };
}

let open: StudioServer;
let keyed: StudioServer;
let training: TrainingClient;
beforeAll(async () => {
  [open, keyed] = await Promise.all([
    StudioServer.start(),
    StudioServer.start("--api-key", mine, "--api-key", theirs),
  ]);
  [training] = await Promise.all([open.train(1), keyed.train(1, keyed.client(mine))]);
}, 120_000);
afterAll(async () => {
  await closeBrowser();
  await Promise.all([open.close(), keyed.close()]);
});

/** A login code, as requested by `tinker-ts studio`. */
async function codeFor(key: string): Promise<string> {
  const response = await fetch(`${keyed.url}/studio/api/code`, {
    method: "POST",
    headers: { "x-api-key": key, "x-tinker-studio": "1" },
  });
  expect(response.status).toBe(200);
  return ((await response.json()) as { code: string }).code;
}

describe("a server with keys", () => {
  it("shows the login to a page without a token, and refuses its requests", async () => {
    const tab = await StudioTab.open(`${keyed.url}/studio`, { allowedFailures: refusals });
    await tab.page.getByLabel("Key").waitFor();
    expect(await tab.page.getByRole("row").count()).toBe(0);
    for (const route of ["runs", "machine", "events?topics=runs", "series?runs=x&keys=y"]) {
      const response = await fetch(`${keyed.url}/studio/api/${route}`);
      expect([route, response.status]).toEqual([route, 401]);
    }
    await tab.close();
  }, 60_000);

  it("a code logs in once and leaves no trace in the address, cookies or storage", async () => {
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

  it("logs in with a key from the form, and reports a wrong one", async () => {
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

  it("shows an owner nothing of another owner", async () => {
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

  it.runIf(isFull)(
    "lets another owner chat with a public checkpoint and see nothing of its run",
    async () => {
      const shared = await keyed.train(1, keyed.client(mine));
      const { path } = await shared.saveWeightsForSampler("shared");
      await keyed.client(mine).createRestClient().publishCheckpointFromTinkerPath(path);
      const tab = await StudioTab.open(
        `${keyed.url}/studio/playground?columns=${path}&max=6#code=${await codeFor(theirs)}`,
        { allowedFailures: [/status of 404/] },
      );
      const field = tab.page.getByRole("textbox", { name: "Prompt", exact: true });
      await field.fill("Hello.");
      await field.press("Control+Enter");
      await tab.page.getByRole("button", { name: "Send" }).waitFor();
      expect(await tab.page.locator(".from").textContent()).toBe(path);
      for (const route of [
        `runs/${encodeURIComponent(shared.modelId)}`,
        `series?runs=${encodeURIComponent(shared.modelId)}&keys=nll`,
        `exhibits?run=${encodeURIComponent(shared.modelId)}`,
        `runs/${encodeURIComponent(shared.modelId)}/series.csv`,
      ]) {
        const response = await fetch(`${keyed.url}/studio/api/${route}`, {
          headers: { "x-api-key": theirs },
        });
        expect([route, response.status]).toEqual([route, 404]);
      }
      await tab.page.goto(`${keyed.url}/studio/runs/${encodeURIComponent(shared.modelId)}`);
      await tab.page.getByRole("alert").waitFor();
      await tab.page.goto(`${keyed.url}/studio/checkpoints`);
      await tab.page.getByText("No checkpoints yet").waitFor();
      await tab.close();
    },
    60_000,
  );
});

describe("a server without keys", () => {
  it("a page on another port can neither read nor change anything", async () => {
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
        form: () =>
          new Promise((resolve) => {
            const page = globalThis as unknown as { document: PageDocument };
            const frame = page.document.createElement("iframe");
            frame.name = "target";
            page.document.body.append(frame);
            const form = page.document.createElement("form");
            Object.assign(form, {
              method: "post",
              action: `${studio}/studio/api/views`,
              target: "target",
              enctype: "text/plain",
            });
            page.document.body.append(form);
            frame.addEventListener("load", () => resolve(""));
            form.submit!();
          }),
        source: () =>
          new Promise((resolve, reject) => {
            const { EventSource } = globalThis as unknown as { EventSource: PageGlobals["Image"] };
            const source = Reflect.construct(EventSource, [
              `${studio}/studio/api/events?topics=runs`,
            ]) as EventTarget;
            source.addEventListener("open", () => resolve("open"));
            source.addEventListener("error", () => reject(new Error("refused")));
          }),
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
      form: "nothing",
      source: "refused",
      image: "refused",
    });
    await tab.context.close();
    other.close();
    const views = await fetch(`${open.url}/studio/api/views`);
    expect(((await views.json()) as { views: unknown[] }).views).toEqual([]);
  }, 60_000);

  it("refuses foreign host names for all requests", async () => {
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

  it("shows names as text, with invisible characters as escapes", async () => {
    const evil = `<img src=x onerror="document.title='owned'">`;
    const hidden = `${evil}\u202Egnp\u200B${"long".repeat(30)}`;
    const ids = [...(await training.getTokenizer()).encode(evil)];
    await logLines(open, "evil", [
      {
        kind: "open",
        name: hidden,
        tags: [evil.slice(0, 40)],
        config: { [evil]: { deep: hidden } },
      },
      { kind: "metrics", step: 0, metrics: { [evil]: 1, nll: 2 } },
      { kind: "text", text: hidden },
      {
        kind: "rollouts",
        step: 0,
        rollouts: [
          {
            group: 0,
            index: 0,
            reward: 1,
            text: `${hidden} ![](http://evil.example/x.png) https://evil.example/`,
            messages: [{ role: evil, content: hidden }],
            logs: [hidden],
            stop: evil,
          },
          { group: 0, index: 1, reward: 0, tokens: ids, model: "tinker-ts/sprout" },
        ],
      },
    ]);
    const run = `${open.url}/studio/runs/evil`;
    const places = [
      `${open.url}/studio`,
      run,
      `${run}?tab=config`,
      `${run}?tab=log`,
      `${run}?tab=rollouts`,
      `${open.url}/studio/compare?runs=evil`,
    ];
    const tab = await StudioTab.open(places[0]!);
    for (const place of isFull ? places : places.slice(0, 1)) {
      await tab.page.goto(place);
      await tab.page.locator("main").getByText("<img src=x").first().waitFor();
      const text = await tab.page.locator("body").innerText();
      expect([place, text]).toEqual([place, expect.not.stringMatching(/[\u202E\u200B]/)]);
      expect([place, text]).toEqual([place, expect.stringContaining("\\u202e")]);
      expect([place, await tab.isTooWide()]).toEqual([place, false]);
    }
    // Each form of a rollout is text; requests elsewhere are complaints of the tab.
    for (const form of isFull ? ["text", "messages", "raw", "tokens"] : ["text"]) {
      await tab.page.goto(`${run}?tab=rollouts&as=${form}`);
      await tab.page.locator(".exhibit-row").first().click();
      await tab.page.locator(".exhibit").waitFor();
      if (form === "tokens") await tab.page.locator(".exhibit-row").nth(1).click();
      await tab.page.locator(".exhibit").getByText("<img src=x").first().waitFor();
      expect(await tab.page.locator("main img, main a[href*='evil.example']").count()).toBe(0);
    }
    await tab.page.goto(`${open.url}/studio/playground?columns=tinker-ts/sprout&max=4`);
    const field = tab.page.getByRole("textbox", { name: "Prompt", exact: true });
    await field.fill(hidden);
    await field.press("Control+Enter");
    await tab.page.getByRole("button", { name: "Send" }).waitFor();
    expect(await tab.page.locator(".question").innerText()).toContain("\\u202e");
    expect(await tab.page.locator("main img").count()).toBe(0);
    expect(await tab.page.title()).not.toBe("owned");
    await tab.close();
  }, 120_000);
});
