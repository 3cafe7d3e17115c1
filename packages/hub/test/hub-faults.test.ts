import { mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { hubErrorOf } from "./support/expect-hub-error.js";
import { dropAfter, endAt, serveBytes, sha256, status } from "./support/fake-hub.js";
import { id, useHub, weights, weightsOf } from "./support/hub-test.js";
import { useTemporaryFolder } from "./support/temporary-folder.js";

const inFolder = useTemporaryFolder();
const { hub, resolve, repositoryFolder, blob, contentsAsked } = useHub(inFolder);

describe("a disturbed download", () => {
  it("continues where the response ended", async () => {
    hub().failNext("GET", "model.safetensors", endAt(70_000));
    const { folder } = await resolve();
    expect((await weightsOf(folder)).equals(weights)).toBe(true);
    expect(contentsAsked().map(({ range }) => range)).toEqual([undefined, "bytes=70000-"]);
  });

  it("survives more broken connections than it makes attempts without progress", async () => {
    for (let i = 0; i < 8; i++) hub().failNext("GET", "model.safetensors", endAt(20_000 * (i + 1)));
    for (let i = 0; i < 2; i++) hub().failNext("GET", "model.safetensors", dropAfter(5_000));
    const { folder } = await resolve();
    expect((await weightsOf(folder)).equals(weights)).toBe(true);
    expect(contentsAsked()).toHaveLength(11);
  });

  it("continues the partial file of an earlier process", async () => {
    await mkdir(path.dirname(blob("x")), { recursive: true });
    await writeFile(`${blob(sha256(weights))}.incomplete`, weights.subarray(0, 150_000));
    const { folder } = await resolve();
    expect((await weightsOf(folder)).equals(weights)).toBe(true);
    expect(contentsAsked().map(({ range }) => range)).toEqual(["bytes=150000-"]);
  });

  it("starts over when the partial file is wrong or too long", async () => {
    await mkdir(path.dirname(blob("x")), { recursive: true });
    for (const part of [new Uint8Array(150_000), new Uint8Array(300_000)]) {
      await writeFile(`${blob(sha256(weights))}.incomplete`, part);
      const { folder } = await resolve();
      expect((await weightsOf(folder)).equals(weights)).toBe(true);
      await rm(repositoryFolder(), { recursive: true });
      await mkdir(path.dirname(blob("x")), { recursive: true });
    }
  });

  it("starts over when the server ignores the range", async () => {
    hub().failNext("GET", "model.safetensors", endAt(70_000));
    hub().failNext("GET", "model.safetensors", (_, response, body) => {
      response.writeHead(200, { "content-length": body.length }).end(body);
    });
    const { folder } = await resolve();
    expect((await weightsOf(folder)).equals(weights)).toBe(true);
  });

  it("retries a busy server", async () => {
    hub().failNext("GET", "/revision/main", status(503));
    hub().failNext("HEAD", "config.json", status(429, { "retry-after": "0" }));
    hub().failNext("GET", "model.safetensors", status(502));
    const { folder } = await resolve();
    expect((await weightsOf(folder)).equals(weights)).toBe(true);
  });

  it("waits for the retry-after of a busy server instead of its own delay", async () => {
    hub().failNext("HEAD", "config.json", status(429, { "retry-after": "0" }));
    const patient = { maxAttempts: 3, firstDelayMs: 3_600_000, maxDelayMs: 3_600_000 };
    const { folder } = await resolve(undefined, { retryPolicy: patient });
    expect((await weightsOf(folder)).equals(weights)).toBe(true);
  });

  it("fails when the server stays unavailable, and keeps the downloaded part", async () => {
    hub().failNext("GET", "model.safetensors", endAt(70_000));
    for (let i = 0; i < 3; i++) hub().failNext("GET", "model.safetensors", status(503));
    expect(await hubErrorOf("hub_unreachable", () => resolve())).toContain("503");
    const { size } = await stat(`${blob(sha256(weights))}.incomplete`);
    expect(size).toBe(70_000);
    expect(await readdir(repositoryFolder())).not.toContain("refs");
  });

  it("times out when the server sends nothing", async () => {
    for (let i = 0; i < 3; i++) {
      hub().failNext("GET", "model.safetensors", (_, response, body) => {
        response.writeHead(200, { "content-length": body.length });
        response.flushHeaders();
      });
    }
    const message = await hubErrorOf("hub_unreachable", () => resolve(id, { stallTimeoutMs: 50 }));
    expect(message).toContain("sent nothing for 0.05 s");
  });

  it("reports a hub that cannot be reached", async () => {
    const message = await hubErrorOf("hub_unreachable", () =>
      resolve(id, { env: { HF_ENDPOINT: "http://127.0.0.1:1" } }),
    );
    expect(message).toContain("127.0.0.1:1");
  });

  it("leaves a part to continue from when aborted, and continues", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const aborted = resolve(id, {
      signal: controller.signal,
      onProgress: ({ file, fileBytes }) => {
        if (file === "model.safetensors" && fileBytes > 0) controller.abort(reason);
      },
    });
    await expect(aborted).rejects.toBe(reason);
    const { size } = await stat(`${blob(sha256(weights))}.incomplete`);
    expect(size).toBeGreaterThan(0);
    hub().seen.length = 0;
    const { folder } = await resolve();
    expect((await weightsOf(folder)).equals(weights)).toBe(true);
  });

  it("two downloads at once give one whole file", async () => {
    const [a, b] = await Promise.all([resolve(), resolve()]);
    expect(a).toEqual(b);
    expect((await weightsOf(a.folder)).equals(weights)).toBe(true);
    expect(
      (await readdir(path.dirname(blob("x")))).filter((name) => name.includes("incomplete")),
    ).toEqual([]);
  });
});

describe("wrong contents", () => {
  it("are refused when they do not match their hash", async () => {
    const other = weights.toReversed();
    for (let i = 0; i < 2; i++) {
      hub().failNext("GET", "model.safetensors", (request, response) => {
        serveBytes(request, response, other);
      });
    }
    expect(await hubErrorOf("hub_corrupt", () => resolve())).toContain("model.safetensors");
    const blobs = await readdir(path.dirname(blob("x")));
    expect(blobs.some((name) => name.startsWith(sha256(weights)))).toBe(false);
  });

  it("are refused when they are longer than announced", async () => {
    hub().failNext("GET", "model.safetensors", (request, response) => {
      serveBytes(request, response, Buffer.concat([weights, weights]));
    });
    expect(await hubErrorOf("hub_corrupt", () => resolve())).toContain("200000 bytes");
  });

  it("are refused when the hub does not describe them", async () => {
    hub().failNext("HEAD", "config.json", status(200));
    expect(await hubErrorOf("hub_failed", () => resolve())).toContain("config.json");
    hub().failNext("GET", "/revision/main", (request, response) => {
      serveBytes(request, response, Buffer.from("<html>"));
    });
    expect(await hubErrorOf("hub_failed", () => resolve())).toContain(id);
  });
});
