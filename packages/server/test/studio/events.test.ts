import { afterEach, beforeEach, expect, it } from "vitest";
import { TestApp } from "../support/test-app.js";
import { askStudio, getRun, getSeries, postStudio, trainSteps } from "./support.js";

interface Event {
  readonly id: string | null;
  readonly kind: string;
  readonly data: Record<string, unknown>;
}

let app: TestApp;
beforeEach(async () => {
  app = await TestApp.open();
});
afterEach(() => app.dispose());

/** A page that listens. */
class Page {
  readonly events: Event[] = [];
  readonly #abort = new AbortController();

  static async open(topics: string, cursor?: string): Promise<Page> {
    const page = new Page();
    const headers = cursor === undefined ? {} : { "last-event-id": cursor };
    const { signal } = page.#abort;
    const response = await askStudio(app, `events?topics=${topics}`, { headers, signal });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    void page.#read(response.body!.pipeThrough(new TextDecoderStream())).catch(() => {});
    return page;
  }

  /** Waits for an event of a kind. */
  async wait(kind: string): Promise<Event> {
    const find = (): Event | undefined => this.events.find((event) => event.kind === kind);
    await expect.poll(find, { timeout: 10_000 }).toBeDefined();
    return find()!;
  }

  close(): void {
    this.#abort.abort();
  }

  async #read(text: ReadableStream<string>): Promise<void> {
    let rest = "";
    for await (const part of text) {
      const blocks = (rest + part).split("\n\n");
      rest = blocks.pop()!;
      for (const block of blocks) {
        const field = (name: string) =>
          block
            .split("\n")
            .find((line) => line.startsWith(`${name}: `))
            ?.slice(name.length + 2);
        const kind = field("event");
        if (kind === undefined) continue;
        const data = JSON.parse(field("data") ?? "{}") as Record<string, unknown>;
        this.events.push({ id: field("id") ?? null, kind, data });
      }
    }
  }
}

it("notifies open pages of points, marks and changed rows", async () => {
  const modelId = await app.model(await app.session());
  const page = await Page.open(`runs,run:${modelId}`);
  await trainSteps(app, modelId, 1);
  const { data } = await page.wait("series");
  expect(data).toEqual({ run: modelId, version: expect.any(Number) as number });
  const places = async () => [...(await getSeries(app, modelId, ["learning_rate:mean"]))[0]!.x];
  await expect.poll(places).toEqual([0]);
  await page.wait("run");
  const before = page.events.length;
  await postStudio(app, `runs/${encodeURIComponent(modelId)}/pause`);
  const later = () => page.events.slice(before).map((event) => [event.kind, event.data["run"]]);
  await expect.poll(later).toContainEqual(["run", modelId]);
  expect((await getRun(app, modelId)).marks).toMatchObject([{ kind: "paused" }]);
  page.close();
});

it("goes on from a cursor without losing or repeating an event", async () => {
  const modelId = await app.model(await app.session());
  const first = await Page.open("runs");
  const { id } = await first.wait("open");
  first.close();
  const label = (name: string) =>
    postStudio(app, `runs/${encodeURIComponent(modelId)}/label`, { name });
  await label("one");
  const second = await Page.open("runs", id!);
  await second.wait("run");
  await label("two");
  const runs = () =>
    second.events.filter(({ kind }) => kind === "run").map(({ data }) => data["run"]);
  await expect.poll(runs).toEqual([modelId, modelId]);
  expect((await getRun(app, modelId)).name).toBe("two");
  const ids = second.events.map((event) => event.id);
  expect(new Set(ids).size).toBe(ids.length);
  second.close();
});

it("makes a page begin anew when the server no longer knows what it missed", async () => {
  const page = await Page.open("runs", "0123abcd-7");
  expect((await page.wait("reset")).data["reason"]).toContain("no longer");
  page.close();
});

it("owes a page that does not read the latest event of each kind, and nothing more", async () => {
  const post = (lines: readonly object[]) =>
    app.handle(
      new Request("http://localhost/api/v1/logs", {
        method: "POST",
        body: lines.map((line) => JSON.stringify({ run: "r", writer: "w", ...line })).join("\n"),
      }),
    );
  await post([{ n: 1, kind: "open" }]);
  const page = await Page.open("run:r");
  const { body } = await askStudio(app, "events?topics=run:r");
  const news = () => page.events.filter(({ kind }) => kind === "log");
  for (let n = 2; n < 6; n++) {
    expect((await post([{ n, kind: "text", text: "x".repeat(20_000) }])).status).toBe(200);
    await expect.poll(() => news().length).toBe(n - 1);
  }
  const reader = body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("event: log")) text += (await reader.read()).value ?? "";
  expect(text.match(/^event: \w+$/gm)).toEqual(["event: open", "event: log"]);
  await reader.cancel();
  page.close();
});

it("shows the queue as pollers see it", async () => {
  const modelId = await app.model(await app.session());
  await postStudio(app, `runs/${encodeURIComponent(modelId)}/pause`);
  const page = await Page.open("queue");
  const { data, id } = await page.wait("queue");
  expect(id).toBeNull();
  expect(data).toMatchObject({ lanes: [{ model: modelId, isPaused: true, waiting: 0 }] });
  page.close();
});
