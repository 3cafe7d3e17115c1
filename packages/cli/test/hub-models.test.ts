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

it("downloads a model of the hub for the engine in this process, with a message", async () => {
  const env = { TINKER_BASE_URL: "local:", TINKER_TS_DATA_DIR: path.join(folder, "data") };
  const order = ["sample", "-m", "some/tiny", "-p", "Hello", "--max-tokens", "4"];
  const first = await runCommand(order, { env });
  expect(first).toMatchObject({ code: 0 });
  expect(first.err).toMatch(/^Fetching some\/tiny: \S+, \d+ of \d+ MB\n/);
  const requests = hub.seen.length;
  expect(await runCommand(order, { env })).toMatchObject({ code: 0, err: "" });
  expect(hub.seen).toHaveLength(requests);
});

const lines = (text: string) => text.trimEnd().split("\n");

it.each([
  ["/nosuch", /"\/nosuch" is neither a folder that exists nor an id of the hub/],
  [
    "tinker-ts/sprot",
    /"tinker-ts\/sprot" is not served here; models of this server: tinker-ts\/sprout/,
  ],
  ["some/tniy", /The hub does not have the model some\/tniy.*In the cache: some\/tiny\.\n$/],
])("reports in one line that %s is not a model", async (name, message) => {
  const env = { TINKER_BASE_URL: "local:", TINKER_TS_DATA_DIR: path.join(folder, "data") };
  const asked = hub.seen.length;
  const { code, out, err } = await runCommand(["chat", "-m", name], { env, input: "hi\n" });
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(lines(err)).toHaveLength(1);
  expect(err).toMatch(message);
  expect(hub.seen.length - asked).toBeLessThanOrEqual(2);
});

it("reports an unreachable hub in one line", async () => {
  const stopped = await FakeHub.start();
  vi.stubEnv("HF_ENDPOINT", stopped.endpoint);
  await stopped.stop();
  const env = { TINKER_BASE_URL: "local:", TINKER_TS_DATA_DIR: path.join(folder, "data") };
  const { code, err } = await runCommand(["chat", "-m", "some/other"], { env, input: "hi\n" });
  vi.stubEnv("HF_ENDPOINT", hub.endpoint);
  expect(code).toBe(1);
  expect(lines(err)).toHaveLength(1);
  expect(err).toMatch(/The hub cannot be reached: .*refused|ECONNREFUSED/i);
});

it("finds a folder from another working directory, by its absolute path", async () => {
  const env = { TINKER_BASE_URL: "local:", TINKER_TS_DATA_DIR: path.join(folder, "relative") };
  const relative = `./${path.relative(process.cwd(), modelFolder)}`;
  const order = ["sample", "-m", relative, "-p", "Hello", "--max-tokens", "2"];
  expect(await runCommand(order, { env })).toMatchObject({ code: 0 });
  const data = path.join(folder, "relative");
  const kept = readdirSync(data, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(path.join(entry.parentPath, entry.name), "latin1"))
    .join("\n");
  expect(kept).toContain(path.resolve(modelFolder));
  expect(kept).not.toContain(relative);
});
