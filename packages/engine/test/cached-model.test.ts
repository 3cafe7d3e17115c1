import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { Engine } from "@tinker-ts/engine";
import { afterEach, expect, it, vi } from "vitest";
import { useTemporaryFolder } from "./support/temporary-folder.js";
import { writeTinyModel } from "../../hub/test/support/tiny-model.js";

const inFolder = useTemporaryFolder();

afterEach(() => {
  vi.unstubAllEnvs();
});

it("a cached model of linked weight shards loads by its id", async () => {
  const commit = "0123456789abcdef0123456789abcdef01234567";
  const repository = inFolder("models--tiny--llama");
  const snapshot = path.join(repository, "snapshots", commit);
  await writeTinyModel(path.join(repository, "blobs"), {
    files: ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"],
  });
  await writeFile(path.join(repository, "blobs", "tokenizer.json"), "{}");
  await mkdir(path.join(repository, "refs"));
  await writeFile(path.join(repository, "refs", "main"), commit);
  await mkdir(snapshot, { recursive: true });
  for (const name of await readdir(path.join(repository, "blobs"))) {
    await symlink(path.join("..", "..", "blobs", name), path.join(snapshot, name));
  }
  vi.stubEnv("HF_HUB_CACHE", inFolder());
  vi.stubEnv("HF_HUB_OFFLINE", "1");
  await using engine = await Engine.create({ threads: 1 });
  const model = await engine.loadModel("tiny/llama");
  expect(model.folder).toBe(snapshot);
  expect(model.config.layers).toBe(2);
  await expect(engine.loadModel("tiny/absent")).rejects.toMatchObject({ category: "user" });
  const signal = AbortSignal.abort(new Error("stopped"));
  await expect(engine.loadModel("tiny/llama", { signal })).rejects.toThrow("stopped");
});
