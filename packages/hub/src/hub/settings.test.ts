import { writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { useTemporaryFolder } from "../../test/support/temporary-folder.js";
import { readHubSettings } from "./settings.js";

const inFolder = useTemporaryFolder();

async function cacheFolder(env: Record<string, string>): Promise<string> {
  return (await readHubSettings(env)).cacheFolder;
}

describe("the hub's settings", () => {
  it("are those of Hugging Face's tools when nothing is set", async () => {
    const settings = await readHubSettings({ HF_HUB_DISABLE_IMPLICIT_TOKEN: "1" });
    expect(settings).toEqual({
      endpoint: "https://huggingface.co",
      cacheFolder: path.join(homedir(), ".cache", "huggingface", "hub"),
      token: null,
      offline: false,
    });
  });

  it("take the nearest of several folders", async () => {
    const xdg = { XDG_CACHE_HOME: inFolder("xdg") };
    expect(await cacheFolder(xdg)).toBe(inFolder("xdg", "huggingface", "hub"));
    const home = { ...xdg, HF_HOME: "~/models" };
    expect(await cacheFolder(home)).toBe(path.join(homedir(), "models", "hub"));
    expect(await cacheFolder({ ...home, HF_HUB_CACHE: inFolder("hub") })).toBe(inFolder("hub"));
  });

  it("take the token from the environment before the file, and the file only if allowed", async () => {
    await writeFile(inFolder("token"), "hf_file\n");
    const token = async (env: Record<string, string>) =>
      (await readHubSettings({ HF_TOKEN_PATH: inFolder("token"), ...env })).token;
    expect(await token({})).toBe("hf_file");
    expect(await token({ HF_TOKEN: "hf_env" })).toBe("hf_env");
    expect(await token({ HF_TOKEN: " " })).toBe("hf_file");
    expect(await token({ HF_HUB_DISABLE_IMPLICIT_TOKEN: "true" })).toBeNull();
  });

  it("are offline by either variable, in the spellings that count as true", async () => {
    for (const value of ["1", "ON", "yes", "True"]) {
      expect((await readHubSettings({ HF_HUB_OFFLINE: value })).offline).toBe(true);
      expect((await readHubSettings({ TRANSFORMERS_OFFLINE: value })).offline).toBe(true);
    }
    expect((await readHubSettings({ HF_HUB_OFFLINE: "0" })).offline).toBe(false);
  });

  it("ignore slashes at the end of the endpoint", async () => {
    expect((await readHubSettings({ HF_ENDPOINT: "https://hub.test/" })).endpoint).toBe(
      "https://hub.test",
    );
  });
});
