import { mkdtempSync, readdirSync } from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { baseModel, LiveServer } from "./support/live-server.js";
import type { Finished } from "./support/run-command.js";
import { UploadHub } from "./support/upload-hub.js";

let server: LiveServer;
let hub: UploadHub;
let checkpoint: string;
let runId: string;
let env: Record<string, string>;

beforeAll(async () => {
  [server, hub] = await Promise.all([LiveServer.start(), UploadHub.start()]);
  const training = await server.train();
  checkpoint = (await training.saveState("final")).path;
  runId = training.modelId;
  env = { HF_TOKEN: UploadHub.token, HF_ENDPOINT: hub.endpoint };
});

beforeEach(() => hub.repositories.clear());

afterEach(() => vi.unstubAllEnvs());

afterAll(() => Promise.all([server.stop(), hub.stop()]));

function push(...options: string[]): Promise<Finished> {
  return server.run(["checkpoint", "push-hf", checkpoint, ...options], { env });
}

const adapterFiles = ["adapter_config.json", "adapter_model.safetensors"];

it("uploads the adapter with a card to a private repository of the run's own", async () => {
  const result = await server.json(["checkpoint", "push-hf", checkpoint], { env });
  const repoId = `somebody/tinker-${baseModel}-${runId.replaceAll(":", "-")}`;
  expect(result).toEqual({ checkpoint_path: checkpoint, repo_id: repoId, public: false });
  const repo = hub.repositories.get(repoId)!;
  expect(repo.visibility).toBe("private");
  expect(repo.files("weights-final")).toEqual([
    "README.md",
    ...adapterFiles,
    "manifest.json",
    "optimizer.safetensors",
  ]);
  expect(repo.commits).toEqual([
    { branch: "weights-final", isPullRequest: false, title: `Upload ${checkpoint}` },
  ]);
  const card = repo.text("weights-final", "README.md");
  expect(card).toContain(`base_model: ${baseModel}\nlibrary_name: peft\n`);
  expect(card).toContain(`tinker_path: ${checkpoint}`);
  expect(card).toContain(`from_pretrained("${repoId}", revision="weights-final")`);
  const config = JSON.parse(repo.text("weights-final", "adapter_config.json")!) as object;
  expect(config).toMatchObject({ r: 4, base_model_name_or_path: expect.any(String) as string });
});

it("uploads to the given repository and branch", async () => {
  const named = ["--repo", "team/adapter", "--revision", "v1", "--commit-message", "First"];
  const { code, out } = await push(...named, "--public", "--no-model-card");
  expect(code).toBe(0);
  expect(out).toMatch(/^Repo ID +team\/adapter\nRevision +v1\nPublic +Yes$/m);
  const repo = hub.repositories.get("team/adapter")!;
  expect(repo.visibility).toBe("public");
  expect(repo.files("v1")).not.toContain("README.md");
  expect(repo.files("main")).toEqual([]);
  expect(repo.commits).toEqual([{ branch: "v1", isPullRequest: false, title: "First" }]);
});

it("opens a pull request to the main branch", async () => {
  expect(await push("--create-pr")).toMatchObject({ code: 0 });
  const [repo] = hub.repositories.values();
  expect(repo!.commits).toMatchObject([{ branch: "main", isPullRequest: true }]);
});

it("uploads the files that match the patterns", async () => {
  await push("-r", "one", "--ignore-pattern", "*.md", "--ignore-pattern", "optimizer*");
  expect(hub.repositories.get("somebody/one")!.files("main")).toEqual([
    ...adapterFiles,
    "manifest.json",
  ]);
  await push("-r", "two", "--allow-pattern", "adapter_*", "--allow-pattern", "checkpoint_?omplete");
  expect(hub.repositories.get("somebody/two")!.files("main")).toEqual([
    ...adapterFiles,
    "checkpoint_complete",
  ]);
  const none = await push("-r", "three", "--allow-pattern", "nothing");
  expect(none).toMatchObject({ code: 1, err: "Error: No file matches the patterns.\n" });
});

it("may be repeated, but does not overwrite another checkpoint", async () => {
  expect(await push("-r", "same")).toMatchObject({ code: 0 });
  expect(await push("-r", "same")).toMatchObject({ code: 0 });
  const other = (await (await server.train()).saveState("other")).path;
  const result = await server.run(["checkpoint", "push-hf", other, "-r", "same"], { env });
  expect(result).toMatchObject({ code: 1, out: "" });
  expect(result.err).toContain(`Error: somebody/same holds another checkpoint: ${checkpoint}`);
});

it("takes the token from an option, and from the cache of the hub's own tools", async () => {
  const bare = { HF_ENDPOINT: hub.endpoint, HF_HOME: server.folder };
  const args = ["checkpoint", "push-hf", checkpoint, "-r", "mine"];
  const without = await server.run(args, { env: bare });
  expect(without.code).toBe(1);
  expect(without.err).toContain("Set HF_TOKEN, pass --hf-token, or run 'hf auth login'.");
  const given = await server.run([...args, "--hf-token", UploadHub.token], { env: bare });
  expect(given).toMatchObject({ code: 0 });
});

it("reports the hub's error", async () => {
  const refused = await push("--hf-token", "hf_wrong", "-r", "team/mine");
  expect(refused.code).toBe(1);
  expect(refused.err).toMatch(/^Error: The hub refused the upload\.\nInvalid credentials/);
  expect(refused.err).toContain("Check that the token may write.");
  const odd = await push("--hf-token", "secret");
  expect(odd.err).toContain("must start with 'hf_'");
});

it("leaves no files behind", async () => {
  const temporary = mkdtempSync(path.join(server.folder, "temporary-"));
  vi.stubEnv("TMPDIR", temporary);
  expect(await push("-r", "clean")).toMatchObject({ code: 0 });
  expect(await push("-r", "clean", "--allow-pattern", "nothing")).toMatchObject({ code: 1 });
  expect(readdirSync(temporary)).toEqual([]);
});
