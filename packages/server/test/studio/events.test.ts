import { afterEach, beforeEach, expect, it } from "vitest";
import { TestApp } from "../support/test-app.js";
import { askStudio, postStudio, trainSteps } from "./support.js";

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

it("tells open pages of points, marks and changed rows", async () => {
  const modelId = await app.model(await app.session());
  const page = await Page.open(`runs,run:${modelId}`);
  await trainSteps(app, modelId, 1);
  const { data } = await page.wait("series");
  expect(data).toMatchObject({ run: modelId });
  const seen = () =>
    page.events
      .filter(({ kind }) => kind === "series")
      .flatMap(({ data: { points } }) => points as { x: number; values: object }[]);
  await expect.poll(() => seen().at(-1)?.values).toHaveProperty("learning_rate:mean");
  expect(seen().at(-1)).toMatchObject({ x: 0 });
  await page.wait("run");
  await postStudio(app, `runs/${encodeURIComponent(modelId)}/pause`);
  expect((await page.wait("mark")).data).toMatchObject({ mark: { kind: "paused" } });
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
  const names = () =>
    second.events
      .filter(({ kind }) => kind === "run")
      .map(({ data }) => (data["run"] as { name: string }).name);
  await expect.poll(names).toEqual(["one", "two"]);
  const ids = second.events.map((event) => event.id);
  expect(new Set(ids).size).toBe(ids.length);
  second.close();
});

it("tells a page to begin anew when the server no longer knows what it missed", async () => {
  const page = await Page.open("runs", "0123abcd-7");
  expect((await page.wait("reset")).data["reason"]).toContain("no longer");
  page.close();
});

it("gives up on a page that does not read, which begins anew when it comes back", async () => {
  const post = (lines: readonly object[]) =>
    app.handle(
      new Request("http://localhost/api/v1/logs", {
        method: "POST",
        body: lines.map((line) => JSON.stringify({ run: "r", writer: "w", ...line })).join("\n"),
      }),
    );
  await post([{ n: 1, kind: "open" }]);
  const page = await Page.open("run:r");
  const { id } = await page.wait("open");
  const { body } = await askStudio(app, "events?topics=run:r");
  const text = "x".repeat(20_000);
  for (let first = 2; first < 252; first += 50) {
    const lines = Array.from({ length: 50 }, (_, n) => ({ n: first + n, kind: "text", text }));
    expect((await post(lines)).status).toBe(200);
  }
  // Nothing was read of it so far: it ends instead of growing.
  expect((await new Response(body).text()).length).toBeLessThan(4_500_000);
  const again = await Page.open("run:r", id!);
  await again.wait("reset");
  page.close();
  again.close();
});

it("shows the queue as those who poll are told", async () => {
  const modelId = await app.model(await app.session());
  await postStudio(app, `runs/${encodeURIComponent(modelId)}/pause`);
  const page = await Page.open("queue");
  const { data, id } = await page.wait("queue");
  expect(id).toBeNull();
  expect(data).toMatchObject({ lanes: [{ model: modelId, isPaused: true, waiting: 0 }] });
  page.close();
});
