import { mkdir, readdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import type { DownloadProgress } from "../src/index.js";
import { hubErrorOf } from "./support/expect-hub-error.js";
import { gitObjectId, sha256, status } from "./support/fake-hub.js";
import { commit, id, smallFiles, useHub, weights, weightsOf } from "./support/hub-test.js";
import { useTemporaryFolder } from "./support/temporary-folder.js";

const inFolder = useTemporaryFolder();
const { hub, resolve, repositoryFolder, contentsAsked } = useHub(inFolder);

const shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];

function weightIndex(weightMap: Record<string, string>): Buffer {
  return Buffer.from(JSON.stringify({ metadata: {}, weight_map: weightMap }));
}

describe("a model that is not cached", () => {
  it("is downloaded into the layout of Hugging Face's tools", async () => {
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

  it("downloads only the needed files", async () => {
    const { folder } = await resolve();
    expect((await readdir(folder)).toSorted()).toEqual([
      "config.json",
      "model.safetensors",
      "tokenizer.json",
    ]);
  });

  it("downloads exactly the weights that their index names", async () => {
    const [first = "", second = ""] = shards;
    const files = {
      ...smallFiles,
      "model.safetensors.index.json": weightIndex({ a: first, b: second, c: first }),
      [first]: weights.subarray(0, 1000),
      [second]: weights.subarray(1000),
      "consolidated.safetensors": weights,
    };
    hub().repositories.set(id, { commit, files, large: [...shards, "consolidated.safetensors"] });
    const { folder } = await resolve();
    expect((await readdir(folder)).toSorted()).toEqual([
      "config.json",
      ...shards,
      "model.safetensors.index.json",
      "tokenizer.json",
    ]);
    const parts = await Promise.all(shards.map((name) => readFile(path.join(folder, name))));
    expect(Buffer.concat(parts).equals(weights)).toBe(true);
    hub().seen.length = 0;
    expect((await resolve()).folder).toBe(folder);
    expect(hub().seen).toEqual([]);
  });

  it("is refused when the index of its weights points outside its folder", async () => {
    const files = {
      ...smallFiles,
      "model.safetensors.index.json": weightIndex({ a: "../x.safetensors" }),
    };
    hub().repositories.set(id, { commit, files });
    const message = await hubErrorOf("invalid_weight_index", () => resolve());
    for (const word of ['"a"', "../x.safetensors"]) expect(message).toContain(word);
  });

  it("downloads only the tokenizer on request", async () => {
    const { folder } = await resolve(id, { files: "tokenizer" });
    expect(await readdir(folder)).toEqual(["tokenizer.json"]);
    expect(contentsAsked()).toEqual([]);
  });

  it("is found by branch, tag or commit", async () => {
    const byCommit = await resolve(`${id}@${commit}`);
    expect(byCommit.commit).toBe(commit);
    const unknown = () => resolve(id, { revision: "v2" });
    expect(await hubErrorOf("hub_not_found", unknown)).toContain("revision v2");
  });

  it("is found under its new name when it was renamed", async () => {
    hub().renamed.set("old-org/old-name", id);
    const { folder } = await resolve("old-org/old-name");
    expect((await weightsOf(folder)).equals(weights)).toBe(true);
  });

  it("is not started when the disk is too full", async () => {
    const etag = sha256(weights);
    hub().failNext(
      "HEAD",
      "model.safetensors",
      status(200, { etag, "x-linked-size": "1".padEnd(17, "0") }),
    );
    const message = await hubErrorOf("disk_full", () => resolve());
    for (const word of ["10000000.0 GB", repositoryFolder(), "HF_HOME"]) {
      expect(message).toContain(word);
    }
    expect(contentsAsked()).toEqual([]);
  });

  it("reports progress up to completion", async () => {
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
    hub().seen.length = 0;
    expect(await resolve()).toEqual(first);
    expect(await resolve(id, { env: { HF_HUB_OFFLINE: "1" } })).toEqual(first);
    expect(hub().seen).toEqual([]);
  });

  it("is used as stored by other tools", async () => {
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
    expect(hub().seen).toEqual([]);
  });

  it("is completed when a file is missing", async () => {
    const { folder } = await resolve();
    await rm(path.join(folder, "config.json"));
    const offline = () => resolve(id, { env: { HF_HUB_OFFLINE: "1" } });
    expect(await hubErrorOf("model_not_cached", offline)).toContain("config.json");
    hub().seen.length = 0;
    await resolve();
    expect(await readFile(path.join(folder, "config.json"), "utf8")).toBe("{}");
    expect(contentsAsked()).toEqual([]);
  });

  it("does not request a tokenizer again that the repository does not have", async () => {
    const { "tokenizer.json": _, ...files } = smallFiles;
    hub().repositories.set(id, { commit, files: { ...files, "model.safetensors": weights } });
    const first = await resolve();
    hub().seen.length = 0;
    expect(await resolve()).toEqual(first);
    expect(hub().seen).toEqual([]);
    const tokenizer = () => resolve(id, { files: "tokenizer" });
    expect(await hubErrorOf("tokenizer_missing", tokenizer)).toContain(id);
  });
});

it("a folder is used as it is", async () => {
  expect(await resolve(inFolder())).toEqual({ folder: inFolder(), commit: null });
  expect(hub().seen).toEqual([]);
});
