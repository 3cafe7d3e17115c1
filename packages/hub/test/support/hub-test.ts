import { readFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach } from "vitest";
import { resolveModel, type ResolvedModel, type ResolveModelOptions } from "../../src/index.js";
import { FakeHub, type SeenRequest } from "./fake-hub.js";

/** The id of the model that each test's hub has. */
export const id = "tiny-org/tiny.Llama-1";

/** The commit of that model. */
export const commit = "0123456789abcdef0123456789abcdef01234567";

/** The contents of its `model.safetensors`. */
export const weights = Uint8Array.from({ length: 200_000 }, (_, i) => (i * 7919) >> 3);

/** Its other files, one of them not needed. */
export const smallFiles = {
  "config.json": Buffer.from("{}"),
  "tokenizer.json": Buffer.from('{"model":{}}'),
  "README.md": Buffer.from("# not needed"),
};

/** A hub and an empty cache for each test. */
export interface HubTest {
  /** The hub of the running test. */
  readonly hub: () => FakeHub;
  /** Resolves the model, or another, with this hub and cache; retries come at once. */
  readonly resolve: (name?: string, options?: ResolveModelOptions) => Promise<ResolvedModel>;
  /** The model's folder in the cache. */
  readonly repositoryFolder: () => string;
  /** The path of a content in the cache. */
  readonly blob: (etag: string) => string;
  /** The requests for contents of large files. */
  readonly contentsAsked: () => SeenRequest[];
}

/** Starts a hub before each test of the calling file; `inFolder` gives paths in the test's own folder. */
export function useHub(inFolder: (...parts: string[]) => string): HubTest {
  let hub: FakeHub;
  beforeEach(async () => {
    hub = await FakeHub.start();
    const files = { ...smallFiles, "model.safetensors": weights, "pytorch_model.bin": weights };
    hub.repositories.set(id, { commit, files, large: ["model.safetensors", "pytorch_model.bin"] });
  });
  afterEach(() => hub.stop());
  const repositoryFolder = () => inFolder("hf", "hub", "models--tiny-org--tiny.Llama-1");
  return {
    hub: () => hub,
    resolve: (name = id, options = {}) =>
      resolveModel(name, {
        retryPolicy: { maxAttempts: 3, firstDelayMs: 1, maxDelayMs: 2 },
        ...options,
        env: { HF_ENDPOINT: hub.endpoint, HF_HOME: inFolder("hf"), ...options.env },
      }),
    repositoryFolder,
    blob: (etag) => path.join(repositoryFolder(), "blobs", etag),
    contentsAsked: () =>
      hub.seen.filter(({ server, method }) => server === "storage" && method === "GET"),
  };
}

/** The weights in a resolved folder. */
export async function weightsOf(folder: string): Promise<Buffer> {
  return readFile(path.join(folder, "model.safetensors"));
}
