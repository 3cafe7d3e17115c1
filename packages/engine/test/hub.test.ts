import { mkdir, readdir, readFile, readlink, rm, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  openModelFolder,
  resolveModel,
  type DownloadProgress,
  type ResolveModelOptions,
} from "../src/index.js";
import { engineErrorOf } from "./support/expect-engine-error.js";
import {
  dropAfter,
  endAt,
  FakeHub,
  gitObjectId,
  serveBytes,
  sha256,
  status,
} from "./support/fake-hub.js";
import { useTemporaryFolder } from "./support/temporary-folder.js";
import { writeTinyModel } from "./support/tiny-model.js";

const inFolder = useTemporaryFolder();
const id = "tiny-org/tiny.Llama-1";
const commit = "0123456789abcdef0123456789abcdef01234567";
const weights = Uint8Array.from({ length: 200_000 }, (_, i) => (i * 7919) >> 3);
const smallFiles = {
  "config.json": Buffer.from("{}"),
  "tokenizer.json": Buffer.from('{"model":{}}'),
  "README.md": Buffer.from("# not needed"),
};
let hub: FakeHub;

beforeEach(async () => {
  hub = await FakeHub.start();
  hub.repositories.set(id, {
    commit,
    files: { ...smallFiles, "model.safetensors": weights, "pytorch_model.bin": weights },
    large: ["model.safetensors", "pytorch_model.bin"],
  });
});

afterEach(() => hub.stop());

function resolve(name = id, options: ResolveModelOptions = {}) {
  return resolveModel(name, {
    retryPolicy: { maxAttempts: 3, firstDelayMs: 1, maxDelayMs: 2 },
    ...options,
    env: { HF_ENDPOINT: hub.endpoint, HF_HOME: inFolder("hf"), ...options.env },
  });
}

const repositoryFolder = () => inFolder("hf", "hub", "models--tiny-org--tiny.Llama-1");
const blob = (etag: string) => path.join(repositoryFolder(), "blobs", etag);
const weightsOf = (folder: string) => readFile(path.join(folder, "model.safetensors"));
const contentsAsked = () =>
  hub.seen.filter(({ server, method }) => server === "storage" && method === "GET");

describe("a model that is not cached", () => {
  it("is downloaded into the layout that Hugging Face's tools share", async () => {
    const resolved = await resolve();
    expect(resolved).toEqual({
      folder: path.join(repositoryFolder(), "snapshots", commit),
      commit,
    });
    expect((await weightsOf(resolved.folder)).equals(weights)).toBe(true);
    const link = await readlink(path.join(resolved.folder, "model.safetensors"));
    expect(link).toBe(path.join("..", "..", "blobs", sha256(weights)));
    const config = await readlink(path.join(resolved.folder, "config.json"));
    expect(path.basename(config)).toBe(gitObjectId(smallFiles["config.json"]));
    expect(await readFile(path.join(repositoryFolder(), "refs", "main"), "utf8")).toBe(commit);
  });

  it("brings only the files that are needed", async () => {
    const { folder } = await resolve();
    expect((await readdir(folder)).toSorted()).toEqual([
      "config.json",
      "model.safetensors",
      "tokenizer.json",
    ]);
  });

  it("opens as a model, shards included", async () => {
    const shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    await writeTinyModel(inFolder("source"), { files: shards });
    const files: Record<string, Uint8Array> = { "tokenizer.json": smallFiles["tokenizer.json"] };
    for (const name of await readdir(inFolder("source"))) {
      files[name] = await readFile(inFolder("source", name));
    }
    hub.repositories.set(id, { commit, files, large: shards });
    const { folder } = await resolve();
    const model = await openModelFolder(folder);
    expect(model.config.layers).toBe(2);
    await model.close();
  });

  it("brings the tokenizer alone when asked to", async () => {
    const { folder } = await resolve(id, { files: "tokenizer" });
    expect(await readdir(folder)).toEqual(["tokenizer.json"]);
    expect(contentsAsked()).toEqual([]);
  });

  it("is found by branch, tag or commit", async () => {
    const byCommit = await resolve(`${id}@${commit}`);
    expect(byCommit.commit).toBe(commit);
    const unknown = () => resolve(id, { revision: "v2" });
    expect(await engineErrorOf("hub_not_found", unknown)).toContain("revision v2");
  });

  it("is found under its new name when it was renamed", async () => {
    hub.renamed.set("old-org/old-name", id);
    const { folder } = await resolve("old-org/old-name");
    expect((await weightsOf(folder)).equals(weights)).toBe(true);
  });

  it("is not begun when the disk cannot hold it", async () => {
    const etag = sha256(weights);
    hub.failNext(
      "HEAD",
      "model.safetensors",
      status(200, { etag, "x-linked-size": "1".padEnd(17, "0") }),
    );
    const message = await engineErrorOf("disk_full", () => resolve());
    for (const word of ["10000000.0 GB", repositoryFolder(), "HF_HOME"]) {
      expect(message).toContain(word);
    }
    expect(contentsAsked()).toEqual([]);
  });

  it("reports progress up to the whole", async () => {
    const reports: DownloadProgress[] = [];
    await resolve(id, { onProgress: (progress) => reports.push(progress) });
    const last = reports.at(-1);
    const totalBytes = weights.length + 2 + 12;
    expect(last).toEqual({
      file: "model.safetensors",
      fileBytes: weights.length,
      fileTotalBytes: weights.length,
      bytes: totalBytes,
      totalBytes,
    });
    const bytes = reports.map((report) => report.bytes);
    expect(bytes).toEqual(bytes.toSorted((a, b) => a - b));
  });
});

describe("a cached model", () => {
  it("is used without the network", async () => {
    const first = await resolve();
    hub.seen.length = 0;
    expect(await resolve()).toEqual(first);
    expect(await resolve(id, { env: { HF_HUB_OFFLINE: "1" } })).toEqual(first);
    expect(hub.seen).toEqual([]);
  });

  it("is used as other tools left it", async () => {
    const folder = path.join(inFolder("cache"), "models--a--b");
    const snapshot = path.join(folder, "snapshots", commit);
    await mkdir(snapshot, { recursive: true });
    await mkdir(path.join(folder, "blobs"));
    await mkdir(path.join(folder, "refs"));
    await writeFile(path.join(folder, "refs", "main"), commit);
    for (const name of ["config.json", "tokenizer.json", "model.safetensors"]) {
      await writeFile(path.join(folder, "blobs", name), name);
      await symlink(path.join("..", "..", "blobs", name), path.join(snapshot, name));
    }
    const resolved = await resolve("a/b", {
      env: { HF_HUB_CACHE: inFolder("cache"), TRANSFORMERS_OFFLINE: "true" },
    });
    expect(resolved.folder).toBe(snapshot);
    expect(hub.seen).toEqual([]);
  });

  it("is completed when a file is missing", async () => {
    const { folder } = await resolve();
    await rm(path.join(folder, "config.json"));
    const offline = () => resolve(id, { env: { HF_HUB_OFFLINE: "1" } });
    expect(await engineErrorOf("model_not_cached", offline)).toContain("config.json");
    hub.seen.length = 0;
    await resolve();
    expect(await readFile(path.join(folder, "config.json"), "utf8")).toBe("{}");
    expect(contentsAsked()).toEqual([]);
  });

  it("is not asked for again when the repository has no tokenizer", async () => {
    const { "tokenizer.json": _, ...files } = smallFiles;
    hub.repositories.set(id, { commit, files: { ...files, "model.safetensors": weights } });
    const first = await resolve();
    hub.seen.length = 0;
    expect(await resolve()).toEqual(first);
    expect(hub.seen).toEqual([]);
    const tokenizer = () => resolve(id, { files: "tokenizer" });
    expect(await engineErrorOf("tokenizer_missing", tokenizer)).toContain(id);
  });
});

describe("a download that is disturbed", () => {
  it("continues where the answer ended", async () => {
    hub.failNext("GET", "model.safetensors", endAt(70_000));
    const { folder } = await resolve();
    expect((await weightsOf(folder)).equals(weights)).toBe(true);
    expect(contentsAsked().map(({ range }) => range)).toEqual([undefined, "bytes=70000-"]);
  });

  it("survives more broken connections than it makes attempts without progress", async () => {
    for (let i = 0; i < 8; i++) hub.failNext("GET", "model.safetensors", endAt(20_000 * (i + 1)));
    for (let i = 0; i < 2; i++) hub.failNext("GET", "model.safetensors", dropAfter(5_000));
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

  it("starts anew when the partial file is wrong or too long", async () => {
    await mkdir(path.dirname(blob("x")), { recursive: true });
    for (const part of [new Uint8Array(150_000), new Uint8Array(300_000)]) {
      await writeFile(`${blob(sha256(weights))}.incomplete`, part);
      const { folder } = await resolve();
      expect((await weightsOf(folder)).equals(weights)).toBe(true);
      await rm(repositoryFolder(), { recursive: true });
      await mkdir(path.dirname(blob("x")), { recursive: true });
    }
  });

  it("starts anew when the server ignores where to continue", async () => {
    hub.failNext("GET", "model.safetensors", endAt(70_000));
    hub.failNext("GET", "model.safetensors", (_, response, body) => {
      response.writeHead(200, { "content-length": body.length }).end(body);
    });
    const { folder } = await resolve();
    expect((await weightsOf(folder)).equals(weights)).toBe(true);
  });

  it("waits out a busy server", async () => {
    hub.failNext("GET", "/revision/main", status(503));
    hub.failNext("HEAD", "config.json", status(429, { "retry-after": "0" }));
    hub.failNext("GET", "model.safetensors", status(502));
    const { folder } = await resolve();
    expect((await weightsOf(folder)).equals(weights)).toBe(true);
  });

  it("gives up on a server that stays away, and keeps what has arrived", async () => {
    hub.failNext("GET", "model.safetensors", endAt(70_000));
    for (let i = 0; i < 3; i++) hub.failNext("GET", "model.safetensors", status(503));
    expect(await engineErrorOf("hub_unreachable", () => resolve())).toContain("503");
    const { size } = await stat(`${blob(sha256(weights))}.incomplete`);
    expect(size).toBe(70_000);
    expect(await readdir(repositoryFolder())).not.toContain("refs");
  });

  it("does not wait for a server that falls silent", async () => {
    for (let i = 0; i < 3; i++) {
      hub.failNext("GET", "model.safetensors", (_, response, body) => {
        response.writeHead(200, { "content-length": body.length });
        response.flushHeaders();
      });
    }
    const message = await engineErrorOf("hub_unreachable", () =>
      resolve(id, { stallTimeoutMs: 50 }),
    );
    expect(message).toContain("sent nothing for 0.05 s");
  });

  it("reports a hub that cannot be reached", async () => {
    const message = await engineErrorOf("hub_unreachable", () =>
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
    hub.seen.length = 0;
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

describe("contents that are wrong", () => {
  it("are refused when they do not match their hash", async () => {
    const other = weights.toReversed();
    for (let i = 0; i < 2; i++) {
      hub.failNext("GET", "model.safetensors", (request, response) => {
        serveBytes(request, response, other);
      });
    }
    expect(await engineErrorOf("hub_corrupt", () => resolve())).toContain("model.safetensors");
    const blobs = await readdir(path.dirname(blob("x")));
    expect(blobs.some((name) => name.startsWith(sha256(weights)))).toBe(false);
  });

  it("are refused when they are longer than announced", async () => {
    hub.failNext("GET", "model.safetensors", (request, response) => {
      serveBytes(request, response, Buffer.concat([weights, weights]));
    });
    expect(await engineErrorOf("hub_corrupt", () => resolve())).toContain("200000 bytes");
  });

  it("are refused when the hub does not describe them", async () => {
    hub.failNext("HEAD", "config.json", status(200));
    expect(await engineErrorOf("hub_failed", () => resolve())).toContain("config.json");
    hub.failNext("GET", "/revision/main", (request, response) => {
      serveBytes(request, response, Buffer.from("<html>"));
    });
    expect(await engineErrorOf("hub_failed", () => resolve())).toContain(id);
  });
});

describe("access", () => {
  beforeEach(() => {
    const files = { ...smallFiles, "model.safetensors": weights };
    hub.repositories.set(id, { commit, files, large: ["model.safetensors"], token: "hf_right" });
  });

  it("is given by HF_TOKEN, which the storage never sees", async () => {
    await resolve(id, { env: { HF_TOKEN: " hf_right\n" } });
    for (const { server, authorization } of hub.seen) {
      expect(authorization).toBe(server === "hub" ? "Bearer hf_right" : undefined);
    }
    expect(contentsAsked()).toHaveLength(1);
  });

  it("is given by the token file of a login", async () => {
    await mkdir(inFolder("hf"));
    await writeFile(inFolder("hf", "token"), "hf_right\n");
    expect((await resolve()).commit).toBe(commit);
  });

  it("is refused with the way out", async () => {
    const none = await engineErrorOf("hub_unauthorized", () => resolve());
    for (const word of [id, "HF_TOKEN", "Access to this model is restricted."]) {
      expect(none).toContain(word);
    }
    const wrong = await engineErrorOf("hub_forbidden", () =>
      resolve(id, { env: { HF_TOKEN: "hf_wrong" } }),
    );
    for (const word of [id, "terms", "HF_TOKEN"]) expect(wrong).toContain(word);
    expect(wrong).not.toContain("hf_wrong");
  });
});

describe("what cannot be found", () => {
  it("is a name that the hub does not know", async () => {
    expect(await engineErrorOf("hub_not_found", () => resolve("nobody/nothing"))).toContain(
      "nobody/nothing",
    );
  });

  it("is a repository without safetensors", async () => {
    const files = { ...smallFiles, "pytorch_model.bin": weights };
    hub.repositories.set(id, { commit, files });
    const message = await engineErrorOf("weights_missing", () => resolve());
    for (const word of [id, "pytorch_model.bin", "safetensors"]) expect(message).toContain(word);
    expect(hub.seen).toHaveLength(1);
  });

  it("is a path that does not exist or a name that no hub can have", async () => {
    for (const name of ["./absent/folder", "/absent", "a/b/c", "a--b/c", "", "a b/c"]) {
      expect(await engineErrorOf("model_not_found", () => resolve(name))).toContain(`"${name}"`);
    }
    expect(hub.seen).toEqual([]);
  });

  it("is anything that is not cached while offline", async () => {
    const message = await engineErrorOf("model_not_cached", () =>
      resolve(id, { env: { HF_HUB_OFFLINE: "1" } }),
    );
    for (const word of [id, "HF_HUB_OFFLINE", inFolder("hf", "hub")])
      expect(message).toContain(word);
    expect(hub.seen).toEqual([]);
  });
});

it("a folder is used as it is", async () => {
  expect(await resolve(inFolder())).toEqual({ folder: inFolder(), commit: null });
  expect(hub.seen).toEqual([]);
});
