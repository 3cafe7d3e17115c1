import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { TrainingClient } from "tinker-ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { baseModel, LiveServer } from "./support/live-server.js";

let server: LiveServer;
let training: TrainingClient;
let statePath: string;
let samplerPath: string;

beforeAll(async () => {
  server = await LiveServer.start();
  training = await server.train();
  statePath = (await training.saveState("state")).path;
  samplerPath = (await training.saveWeightsForSampler("sampler", { ttlSeconds: 7200 })).path;
});

afterAll(() => server.stop());

interface CheckpointJson {
  readonly tinker_path: string;
  readonly public: boolean;
  readonly expires_at: string | null;
}

function info(checkpoint: string): Promise<CheckpointJson> {
  return server.json<CheckpointJson>(["checkpoint", "info", checkpoint]);
}

async function pathsOf(runId: string): Promise<string[]> {
  const list = ["checkpoint", "list", "--run-id", runId];
  const { checkpoints } = await server.json<{ checkpoints: CheckpointJson[] }>(list);
  return checkpoints.map((checkpoint) => checkpoint.tinker_path).toSorted();
}

describe("checkpoint list", () => {
  it("shows every field of every checkpoint in JSON", async () => {
    const { checkpoints } = await server.json<{ checkpoints: CheckpointJson[] }>([
      "checkpoint",
      "list",
    ]);
    expect(checkpoints.map((checkpoint) => checkpoint.tinker_path)).toEqual([
      samplerPath,
      statePath,
    ]);
    expect(checkpoints[1]).toEqual({
      checkpoint_id: "weights/state",
      checkpoint_type: "training",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{6})?\+00:00$/) as string,
      tinker_path: statePath,
      size_bytes: expect.any(Number) as number,
      public: false,
      expires_at: null,
    });
  });

  it("can be limited to a run", async () => {
    const list = ["checkpoint", "list", "--run-id", training.modelId];
    expect(await server.json(list)).toMatchObject({ run_id: training.modelId });
    const { out } = await server.run(list);
    expect(out.split("\n")[0]).toBe(`2 checkpoints for run ${training.modelId}`);
    expect(out).toMatch(
      /^sampler_weights\/sampler +sampler +[\d.]+ KB +No +just now +in 1 hour +t/m,
    );
  });

  it("fits a screen of 80 columns, and shows whole paths on request or piped", async () => {
    const narrow = await server.run(["checkpoint", "list"], { columns: 80 });
    const lines = narrow.out.trimEnd().split("\n");
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(lines[2]).toMatch(/Name +Run +Kind +Size +Age/);
    expect(lines[4]).toMatch(/^sampler +[\w-]{8}:train:\d+ +sampler +[\d.]+ KB +just now$/);
    expect((await server.run(["checkpoint", "list", "--wide"], { columns: 400 })).out).toContain(
      samplerPath,
    );
    expect((await server.run(["checkpoint", "list"])).out).toContain(samplerPath);
  });

  it("shows one page", async () => {
    const page = ["checkpoint", "list", "--limit", "1", "--offset", "1"];
    const { checkpoints } = await server.json<{ checkpoints: CheckpointJson[] }>(page);
    expect(checkpoints.map((checkpoint) => checkpoint.tinker_path)).toEqual([statePath]);
    const { out } = await server.run(["checkpoint", "list", "--limit", "1"]);
    expect(out).toMatch(/^1 checkpoint \(1 more not shown, use --limit to see more\)\n/);
  });
});

describe("checkpoint info", () => {
  it("shows the checkpoint and its adapter", async () => {
    expect(await info(statePath)).toMatchObject({
      tinker_path: statePath,
      is_lora: true,
      lora_rank: 4,
    });
    const { out } = await server.run(["checkpoint", "info", samplerPath]);
    expect(out).toMatch(/^Checkpoint: sampler_weights\/sampler\n/);
    expect(out).toMatch(/^Expires +in 1 hour$/m);
    expect(out).toMatch(/^LoRA +Yes \(Rank 4\)$/m);
  });

  it("ends with 1 if there is none", async () => {
    const missing = `tinker://${training.modelId}/weights/nothing`;
    const { code, err } = await server.run(["checkpoint", "info", missing]);
    expect(code).toBe(1);
    expect(err).toContain(`Error: Checkpoint not found: ${missing}`);
  });
});

describe("an invalid path is refused before any request", () => {
  const commands = ["info", "publish", "unpublish", "delete", "download", "push-hf"];
  it.each([...commands.map((command) => [command]), ["set-ttl", "--remove"]])(
    "checkpoint %s",
    async (command, ...options) => {
      for (const wrong of [
        "final",
        "tinker://",
        "tinker://run/other/name",
        "tinker://run/weights",
      ]) {
        const { code, err } = await server.run(["checkpoint", command, wrong, ...options], {
          env: { TINKER_BASE_URL: "http://127.0.0.1:9", HF_TOKEN: "hf" },
        });
        expect(code).toBe(1);
        expect(err).toContain(`Error: Invalid checkpoint path: ${JSON.stringify(wrong)}`);
        expect(err).toContain("tinker://RUN_ID/weights/NAME");
      }
    },
  );
});

describe("checkpoint publish and unpublish", () => {
  it("change its visibility, and print nothing", async () => {
    const silent = { code: 0, out: "", err: "" };
    expect(await server.run(["checkpoint", "publish", samplerPath])).toEqual(silent);
    expect((await info(samplerPath)).public).toBe(true);
    expect(await server.run(["checkpoint", "unpublish", samplerPath])).toEqual(silent);
    expect((await info(samplerPath)).public).toBe(false);
  });

  it("end with 1 for a missing checkpoint", async () => {
    const missing = `tinker://${training.modelId}/weights/nothing`;
    const { code, err } = await server.run(["checkpoint", "publish", missing]);
    expect(code).toBe(1);
    expect(err).toMatch(/^Error: Resource not found\n/);
  });
});

describe("checkpoint set-ttl", () => {
  it("sets and removes the time of expiry, and prints nothing", async () => {
    const silent = { code: 0, out: "", err: "" };
    expect(await server.run(["checkpoint", "set-ttl", statePath, "--ttl", "600"])).toEqual(silent);
    const { expires_at: expiry } = await info(statePath);
    const leftMs = Date.parse(expiry!) - Date.now();
    expect(leftMs).toBeGreaterThan(500_000);
    expect(leftMs).toBeLessThan(601_000);
    expect(await server.run(["checkpoint", "set-ttl", statePath, "--remove"])).toEqual(silent);
    expect((await info(statePath)).expires_at).toBeNull();
  });

  it.each([[[]], [["--ttl", "5", "--remove"]], [["--ttl", "0"]], [["--ttl=-5"]]])(
    "refuses %j",
    async (options) => {
      const { code, err } = await server.run(["checkpoint", "set-ttl", statePath, ...options]);
      expect(code).toBe(1);
      expect(err).toMatch(/^Error: .*--ttl/);
    },
  );
});

describe("checkpoint save", () => {
  it("saves a fresh adapter and prints its path", async () => {
    const options = ["--model", baseModel, "--rank", "2", "--seed", "7", "-o", "saved.json"];
    const json = await server.json<{ weights_path: string }>(["checkpoint", "save", ...options]);
    expect(json).toMatchObject({
      base_model: baseModel,
      weights_path: expect.stringMatching(
        /^tinker:\/\/[^/]+\/sampler_weights\/checkpoint-qwen3$/,
      ) as string,
      saved_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/) as string,
    });
    expect(JSON.parse(readFileSync(path.join(server.folder, "saved.json"), "utf8"))).toEqual(json);
    expect(await info(json.weights_path)).toMatchObject({ lora_rank: 2 });
  });

  it("saves the weights of a checkpoint under a new name", async () => {
    const options = ["--model-path", statePath, "--name", "again", "--output", "again.json"];
    const { code, out } = await server.run(["checkpoint", "save", ...options]);
    expect(code).toBe(0);
    expect(out).toMatch(/^Weights Path +tinker:\/\/[^/]+\/sampler_weights\/again$/m);
  });

  it.each([
    [[], "No model is named"],
    [["--model", "a", "--base-model", "b"], "only one of"],
    [["--base-model", "tinker://run/weights/name"], "is a checkpoint"],
    [["--model-path", "name"], "Invalid checkpoint path"],
  ])("refuses %j as a source", async (options, message) => {
    const { code, err } = await server.run(["checkpoint", "save", "-o", "x.json", ...options]);
    expect(code).toBe(1);
    expect(err).toContain(message);
  });

  it("lists the models", async () => {
    const { code, err } = await server.run(["checkpoint", "save", "-o", "x.json", "-m", "gpt"]);
    expect(code).toBe(1);
    expect(err).toContain('"gpt" is not served here; models of this server: qwen3');
  });
});

describe("checkpoint download", () => {
  it("unpacks into a folder that is named after the path", async () => {
    const json = await server.json(["checkpoint", "download", statePath, "-o", "down"]);
    const folder = path.join(server.folder, "down", `${training.modelId}_weights_state`);
    expect(json).toEqual({
      checkpoint_path: statePath,
      destination: folder,
      file_size_bytes: expect.any(Number) as number,
    });
    expect(readdirSync(folder).toSorted()).toEqual([
      "adapter_config.json",
      "adapter_model.safetensors",
      "checkpoint_complete",
      "manifest.json",
      "optimizer.safetensors",
    ]);
  });

  it("does not touch an existing folder without --force", async () => {
    const folder = path.join(server.folder, `${training.modelId}_sampler_weights_sampler`);
    mkdirSync(folder);
    writeFileSync(path.join(folder, "mine"), "");
    const download = ["checkpoint", "download", samplerPath];
    const refused = await server.run(download);
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toContain(`Error: Target directory already exists: ${folder}`);
    expect(existsSync(path.join(folder, "mine"))).toBe(true);
    const { code, out } = await server.run([...download, "--force"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^Archive Size +[\d.]+ KB$/m);
    expect(existsSync(path.join(folder, "mine"))).toBe(false);
    expect(existsSync(path.join(folder, "adapter_model.safetensors"))).toBe(true);
  });

  it("shows a bar on a screen, nothing in a log, and nothing with --quiet", async () => {
    const download = ["checkpoint", "download", samplerPath, "--force"];
    const screen = await server.run(download, { isScreen: true });
    expect(screen.err).toContain("\r\u001B[2KDownloading");
    expect(screen.err.endsWith("\r\u001B[2K")).toBe(true);
    expect((await server.run(download)).err).toBe("");
    expect((await server.run([...download, "--quiet"], { isScreen: true })).err).toBe("");
  });
});

describe("checkpoint delete", () => {
  async function freshRun(): Promise<{ runId: string; paths: string[] }> {
    const fresh = await server.train();
    const states = [await fresh.saveState("a"), await fresh.saveState("b")];
    const samplers = [await fresh.saveWeightsForSampler("a")];
    const paths = [...states, ...samplers].map(({ path: saved }) => saved).toSorted();
    return { runId: fresh.modelId, paths };
  }

  it("asks first; everything but yes changes nothing", async () => {
    const { runId, paths } = await freshRun();
    for (const input of ["n\n", "\n", "maybe\n"]) {
      const result = await server.run(["checkpoint", "delete", paths[0]!], { input });
      expect(result).toMatchObject({ code: 0, out: "" });
      expect(result.err).toContain(paths[0]);
      expect(result.err).toContain("This cannot be undone.\nDelete this checkpoint? [y/N]: ");
      expect(result.err).toContain("Cancelled.");
    }
    expect(await pathsOf(runId)).toEqual(paths);
  });

  it("ends with 1 without a terminal to answer", async () => {
    const { runId, paths } = await freshRun();
    const { code, err } = await server.run(["checkpoint", "delete", paths[0]!]);
    expect(code).toBe(1);
    expect(err).toContain("Pass --yes to delete without a question.");
    expect(await pathsOf(runId)).toEqual(paths);
  });

  it("deletes the named checkpoints", async () => {
    const { runId, paths } = await freshRun();
    const [first, second, third] = paths;
    const result = await server.run(["checkpoint", "delete", first!, second!], { input: "yes\n" });
    expect(result).toMatchObject({ code: 0, out: "Deleted 2 checkpoints.\n" });
    expect(result.err).toContain("Delete these 2 checkpoints?");
    expect(await pathsOf(runId)).toEqual([third]);
  });

  it("continues after one that cannot be deleted, and reports it", async () => {
    const { runId, paths } = await freshRun();
    const missing = `tinker://${runId}/weights/nothing`;
    const args = ["checkpoint", "delete", missing, paths[0]!, "-y"];
    const { code, out } = await server.run(["--json", ...args]);
    expect(code).toBe(0);
    expect(out.trim().split("\n")).toHaveLength(1);
    expect(JSON.parse(out)).toEqual({
      deleted_count: 1,
      failed: [
        { tinker_path: missing, error: expect.stringMatching(/^Resource not found/) as string },
      ],
    });
    const again = await server.run(args);
    expect(again.out).toBe("Deleted 0 checkpoints.\n");
    expect(again.err.match(/^Failed to delete /gm)).toHaveLength(2);
  });

  it("filters the checkpoints of a run by type and time", async () => {
    const { runId, paths } = await freshRun();
    const remove = ["checkpoint", "delete", "--run-id", runId, "--yes"];
    for (const filter of [
      ["--before", "2020-01-01"],
      ["--after", "2999-01-01T10:00:00Z"],
    ]) {
      const { code, out } = await server.run([...remove, ...filter]);
      expect({ code, out }).toEqual({ code: 0, out: `No checkpoints of run ${runId} match.\n` });
      expect(await server.json([...remove, ...filter])).toEqual({ deleted_count: 0, failed: [] });
    }
    const samplers = await server.run([...remove, "--type", "sampler_weights"]);
    expect(samplers.out).toBe("Deleted 1 checkpoint.\n");
    expect(samplers.err).toMatch(
      /sampler_weights\/a \([\d.]+ KB, just now\)\nTotal: 1, [\d.]+ KB\n/,
    );
    expect(await pathsOf(runId)).toEqual(paths.filter((saved) => !saved.includes("sampler")));
    const rest = ["--type", "training", "--after", "2020-01-01", "--before", "2999-01-01"];
    expect(await server.json([...remove, ...rest])).toEqual({ deleted_count: 2, failed: [] });
    expect(await pathsOf(runId)).toEqual([]);
  });

  it.each([
    [[], "Nothing to delete."],
    [["tinker://r/weights/n", "--run-id", "r"], "cannot be combined"],
    [["tinker://r/weights/n", "--type", "sampler"], "need --run-id"],
    [["--run-id", "r", "--type", "other"], 'Unknown type: "other"'],
    [["--run-id", "r", "--before", "30.1.2026"], "Invalid date for --before"],
    [["--run-id", "r", "--after", "2026-02-30"], "Invalid date for --after"],
  ])("refuses %j", async (args, message) => {
    const { code, err } = await server.run(["checkpoint", "delete", "--yes", ...args]);
    expect(code).toBe(1);
    expect(err).toContain(message);
  });
});
