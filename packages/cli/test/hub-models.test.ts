import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { FakeHub } from "../../hub/test/support/fake-hub.js";
import { modelFolder } from "./support/live-server.js";
import { runCommand } from "./support/run-command.js";

let folder: string;
let hub: FakeHub;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-hub-models-"));
  hub = await FakeHub.start();
  const names = readdirSync(modelFolder);
  hub.repositories.set("some/tiny", {
    commit: "0123456789abcdef0123456789abcdef01234567",
    files: Object.fromEntries(
      names.map((name) => [name, readFileSync(path.join(modelFolder, name))]),
    ),
    large: ["model.safetensors"],
  });
  vi.stubEnv("HF_ENDPOINT", hub.endpoint);
  vi.stubEnv("HF_HOME", path.join(folder, "hub"));
});

afterAll(async () => {
  vi.unstubAllEnvs();
  await hub.stop();
  rmSync(folder, { recursive: true, force: true });
});

it("fetches a model of the hub for the engine in this process, and says so", async () => {
  const env = { TINKER_BASE_URL: "local:", TINKER_TS_DATA_DIR: path.join(folder, "data") };
  const order = ["sample", "-m", "some/tiny", "-p", "Hello", "--max-tokens", "4"];
  const first = await runCommand(order, { env });
  expect(first).toMatchObject({ code: 0 });
  expect(first.err).toMatch(/^Fetching some\/tiny: \S+, \d+ of \d+ MB\n/);
  const requests = hub.seen.length;
  expect(await runCommand(order, { env })).toMatchObject({ code: 0, err: "" });
  expect(hub.seen).toHaveLength(requests);
});
