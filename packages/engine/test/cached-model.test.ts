import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { resolveModel } from "@tinker-ts/hub";
import { expect, it } from "vitest";
import { openModelFolder } from "../src/index.js";
import { useTemporaryFolder } from "./support/temporary-folder.js";
import { writeTinyModel } from "./support/tiny-model.js";

const inFolder = useTemporaryFolder();

it("a model that the hub's cache holds as links to several weight files opens", async () => {
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
  const env = { HF_HUB_CACHE: inFolder(), HF_HUB_OFFLINE: "1" };
  const { folder } = await resolveModel("tiny/llama", { env });
  expect(folder).toBe(snapshot);
  const model = await openModelFolder(folder);
  expect(model.config.layers).toBe(2);
  await model.close();
});
