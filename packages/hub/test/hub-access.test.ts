import { mkdir, writeFile } from "node:fs/promises";
import { beforeEach, describe, expect, it } from "vitest";
import { hubErrorOf } from "./support/expect-hub-error.js";
import { commit, id, smallFiles, useHub, weights } from "./support/hub-test.js";
import { useTemporaryFolder } from "./support/temporary-folder.js";

const inFolder = useTemporaryFolder();
const { hub, resolve, contentsAsked } = useHub(inFolder);

describe("access", () => {
  beforeEach(() => {
    const files = { ...smallFiles, "model.safetensors": weights };
    hub().repositories.set(id, { commit, files, large: ["model.safetensors"], token: "hf_right" });
  });

  it("is given by HF_TOKEN, which the storage never sees", async () => {
    await resolve(id, { env: { HF_TOKEN: " hf_right\n" } });
    for (const { server, authorization } of hub().seen) {
      expect(authorization).toBe(server === "hub" ? "Bearer hf_right" : undefined);
    }
    expect(contentsAsked()).toHaveLength(1);
  });

  it("is given by the token file of a login", async () => {
    await mkdir(inFolder("hf"));
    await writeFile(inFolder("hf", "token"), "hf_right\n");
    expect((await resolve()).commit).toBe(commit);
  });

  it("is refused with a suggestion", async () => {
    const none = await hubErrorOf("hub_unauthorized", () => resolve());
    for (const word of [id, "HF_TOKEN", "Access to this model is restricted."]) {
      expect(none).toContain(word);
    }
    const wrong = await hubErrorOf("hub_forbidden", () =>
      resolve(id, { env: { HF_TOKEN: "hf_wrong" } }),
    );
    for (const word of [id, "terms", "HF_TOKEN"]) expect(wrong).toContain(word);
    expect(wrong).not.toContain("hf_wrong");
  });
});

describe("a model that is not found", () => {
  it("is a name unknown to the hub", async () => {
    expect(await hubErrorOf("hub_not_found", () => resolve("nobody/nothing"))).toContain(
      "nobody/nothing",
    );
  });

  it("is a repository without safetensors", async () => {
    const files = { ...smallFiles, "pytorch_model.bin": weights };
    hub().repositories.set(id, { commit, files });
    const message = await hubErrorOf("weights_missing", () => resolve());
    for (const word of [id, "pytorch_model.bin", "safetensors"]) expect(message).toContain(word);
    expect(hub().seen).toHaveLength(1);
  });

  it("is a repository that holds no model", async () => {
    hub().repositories.set(id, { commit, files: { "model.safetensors": weights } });
    expect(await hubErrorOf("model_not_found", () => resolve())).toContain("config.json");
    const adapter = { "adapter_config.json": weights, "adapter_model.safetensors": weights };
    hub().repositories.set(id, { commit, files: adapter });
    expect(await hubErrorOf("model_not_found", () => resolve())).toContain("is an adapter");
  });

  it("is a path that does not exist or a name that no hub can have", async () => {
    for (const name of ["./absent/folder", "/absent", "a/b/c", "a--b/c", "", "a b/c"]) {
      expect(await hubErrorOf("model_not_found", () => resolve(name))).toContain(`"${name}"`);
    }
    expect(hub().seen).toEqual([]);
  });

  it("is anything that is not cached while offline", async () => {
    const message = await hubErrorOf("model_not_cached", () =>
      resolve(id, { env: { HF_HUB_OFFLINE: "1" } }),
    );
    for (const word of [id, "HF_HUB_OFFLINE", inFolder("hf", "hub")])
      expect(message).toContain(word);
    expect(hub().seen).toEqual([]);
  });
});
