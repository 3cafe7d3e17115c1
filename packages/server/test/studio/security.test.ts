import { afterEach, describe, expect, it } from "vitest";
import type { StudioCode, StudioHello, StudioToken } from "tinker-ts/wire";
import { ManualClock } from "../support/manual-clock.js";
import { TestApp, type TestAppOptions } from "../support/test-app.js";
import { askStudio, getStudio, listRuns, postStudio } from "./support.js";

let app: TestApp | undefined;
afterEach(() => app?.dispose());
const open = async (options: TestAppOptions = {}): Promise<TestApp> =>
  (app = await TestApp.open(options));

const places = [
  "/studio",
  "/studio/runs/some",
  "/studio/files/index.js",
  "/studio/api/hello",
  "/studio/api/runs",
  "/studio/api/events?topics=runs",
  "/studio/api/nothing",
];

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
];

describe("every answer", () => {
  it("carries the content policy, errors too, sets no cookie, and keeps data out of caches", async () => {
    const studio = await open();
    for (const place of places) {
      for (const headers of [{}, { "sec-fetch-site": "cross-site" }]) {
        const abort = new AbortController();
        const response = await askStudio(studio, place, { headers, signal: abort.signal });
        abort.abort();
        const csp = response.headers.get("content-security-policy") ?? "";
        for (const part of policy)
          expect([place, csp]).toEqual([place, expect.stringContaining(part)]);
        expect(response.headers.get("x-content-type-options")).toBe("nosniff");
        expect(response.headers.get("referrer-policy")).toBe("no-referrer");
        expect(response.headers.get("set-cookie")).toBeNull();
        if (place.startsWith("/studio/api")) {
          expect([place, response.headers.get("cache-control")]).toEqual([place, "no-store"]);
        }
      }
    }
  });

  it("is refused to another name of this machine", async () => {
    const studio = await open();
    for (const place of places) {
      const request = new Request(`http://evil.example${place}`, {
        headers: { "sec-fetch-site": "same-origin" },
      });
      const response = await studio.handle(request);
      expect([place, response.status]).toEqual([place, 403]);
      expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
    }
  });

  it("is refused to pages of other ports and sites, whether they send an origin or not", async () => {
    const studio = await open({ corsOrigins: ["http://localhost:9999"] });
    for (const site of ["same-site", "cross-site"]) {
      for (const place of places.filter(
        (one) => one !== "/studio" && one !== "/studio/runs/some",
      )) {
        const headers = { "sec-fetch-site": site };
        const response = await askStudio(studio, place, { headers });
        expect([place, site, response.status]).toEqual([place, site, 403]);
      }
      const embedded = {
        "sec-fetch-site": site,
        "sec-fetch-mode": "no-cors",
        "sec-fetch-dest": "image",
      };
      expect((await askStudio(studio, "/studio", { headers: embedded })).status).toBe(403);
    }
    const foreign = { origin: "http://localhost:1234", "sec-fetch-site": "same-site" };
    expect((await askStudio(studio, "runs", { headers: foreign })).status).toBe(403);
    const link = {
      "sec-fetch-site": "cross-site",
      "sec-fetch-mode": "navigate",
      "sec-fetch-dest": "document",
    };
    expect((await askStudio(studio, "/studio", { headers: link })).status).not.toBe(403);
  });

  it("to something that changes needs the studio's own header", async () => {
    const studio = await open();
    const modelId = await studio.model(await studio.session());
    const id = encodeURIComponent(modelId);
    for (const action of ["pause", "stop", "save", "label", "controls"]) {
      const request = new Request(`http://localhost/studio/api/runs/${id}/${action}`, {
        method: "POST",
        body: "{}",
      });
      expect([action, (await studio.handle(request)).status]).toEqual([action, 403]);
    }
  });
});

describe("with keys", () => {
  const alice = { key: "tml-alice-key", owner: "alice" };
  const bob = { key: "tml-bob-key", owner: "bob" };

  it("answers nothing but a greeting before the login", async () => {
    const studio = await open({ apiKeys: [alice] });
    expect(await getStudio<StudioHello>(studio, "hello")).toEqual({
      version: expect.any(String) as string,
      needsLogin: true,
      owner: null,
      address: null,
      capture: null,
      models: null,
      hasFolders: null,
      cursor: null,
    });
    for (const place of [
      "runs",
      "series",
      "machine",
      "events?topics=runs",
      "views",
      "checkpoints",
    ]) {
      expect([place, (await askStudio(studio, place)).status]).toEqual([place, 401]);
    }
  });

  it("logs a page in with a code once and for a minute, and with a token for an hour", async () => {
    const clock = new ManualClock();
    const studio = await open({ apiKeys: [alice], clock });
    const ask = () => postStudio<StudioCode>(studio, "code", {}, { key: alice.key });
    const use = (code: string) => askStudio(studio, "login", { method: "POST", body: { code } });
    const { code } = await ask();
    const first = await use(code);
    const { token } = (await first.json()) as StudioToken;
    const headers = { authorization: `Bearer ${token}` };
    expect((await askStudio(studio, "runs", { headers })).status).toBe(200);
    expect((await use(code)).status).toBe(401);
    const late = await ask();
    await clock.advance(60_001);
    expect((await use(late.code)).status).toBe(401);
    await clock.advance(3_600_000);
    expect((await askStudio(studio, "runs", { headers })).status).toBe(401);
  });

  it("logs in with a key, and not with a wrong one", async () => {
    const studio = await open({ apiKeys: [alice] });
    const login = (key: string) => askStudio(studio, "login", { method: "POST", body: { key } });
    expect((await login(alice.key)).status).toBe(200);
    expect((await login("tml-wrong-key")).status).toBe(401);
  });

  it("shows an owner nothing of another's, not even by name", async () => {
    const studio = await open({ apiKeys: [alice, bob] });
    const options = { key: alice.key };
    const modelId = await studio.model(await studio.session(options), options);
    expect(await listRuns(studio, "", options)).toHaveLength(1);
    const stranger = { key: bob.key };
    expect(await listRuns(studio, "", stranger)).toEqual([]);
    const id = encodeURIComponent(modelId);
    for (const place of [
      `runs/${id}`,
      `series?runs=${id}&keys=nll`,
      `exhibits?run=${id}`,
      `runs/${id}/log`,
      `runs/${id}/series.csv`,
      `runs/${id}/spans`,
      `checkpoints?run=${id}`,
    ]) {
      expect([place, (await askStudio(studio, place, stranger)).status]).toEqual([place, 404]);
    }
    for (const action of ["pause", "resume", "stop", "save", "label", "controls"]) {
      const body = { how: "now", values: {} };
      const call = { ...stranger, method: "POST", body };
      expect((await askStudio(studio, `runs/${id}/${action}`, call)).status).toBe(404);
    }
  });
});

it("keeps names and keys as they are, prototype keys too", async () => {
  const studio = await open();
  const key = "<img src=x onerror=alert(1)>";
  const lines = [
    { run: "r", writer: "w", n: 1, kind: "open", name: key, tags: ["__proto__"] },
    {
      run: "r",
      writer: "w",
      n: 2,
      kind: "metrics",
      step: 0,
      metrics: JSON.parse(`{"${key}": 1, "__proto__": 2, "=1+1": 3}`) as object,
    },
  ];
  const body = lines.map((line) => JSON.stringify(line)).join("\n");
  await studio.handle(new Request("http://localhost/api/v1/logs", { method: "POST", body }));
  const run = await getStudio<{ name: string; series: { key: string }[] }>(studio, "runs/r");
  expect(run.name).toBe(key);
  expect(run.series.map((one) => one.key).toSorted()).toEqual(
    [key, "=1+1", "__proto__"].toSorted(),
  );
  const csv = await (await askStudio(studio, "runs/r/series.csv")).text();
  expect(csv.split("\n")[0]).toContain("'=1+1");
});
