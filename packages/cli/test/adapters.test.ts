import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { openModelFolder, readAdapter, readModelConfig, type LoraAdapter } from "@tinker-ts/engine";
import { startServer } from "@tinker-ts/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { adapterFolder, baseModel, LiveServer, modelFolder } from "./support/live-server.js";

let server: LiveServer;
let trained: string;

beforeAll(async () => {
  // The folder's own name, so that the model is found on both sides.
  server = await LiveServer.start({ [modelFolder]: modelFolder });
  trained = (await (await server.train()).saveState("trained")).path;
});

afterAll(() => server.stop());

async function read(folder: string): Promise<LoraAdapter> {
  const model = await openModelFolder(modelFolder);
  try {
    return await readAdapter(folder, model);
  } finally {
    await model.close();
  }
}

describe("checkpoint import", () => {
  it("makes a checkpoint with the adapter's own weights", async () => {
    const options = ["--base-model", baseModel, "--name", "from-elsewhere"];
    const result = await server.json<{ tinker_path: string; training_run_id: string }>([
      "checkpoint",
      "import",
      adapterFolder,
      ...options,
    ]);
    expect(result).toEqual({
      tinker_path: `tinker://${result.training_run_id}/weights/from-elsewhere`,
      training_run_id: result.training_run_id,
      base_model: baseModel,
      lora_rank: 4,
    });
    const { destination } = await server.json<{ destination: string }>([
      "checkpoint",
      "download",
      result.tinker_path,
    ]);
    expect((await read(destination)).tensors).toEqual((await read(adapterFolder)).tensors);
    const training = await server.service.createTrainingClientFromState(result.tinker_path);
    expect((await training.getInfo()).loraRank).toBe(4);
  });

  it("reads the base model and the name from the adapter's folder", async () => {
    const folder = path.join(server.folder, "my adapter");
    cpSync(adapterFolder, folder, { recursive: true });
    const file = path.join(folder, "adapter_config.json");
    const config = JSON.parse(readFileSync(file, "utf8")) as object;
    writeFileSync(file, JSON.stringify({ ...config, base_model_name_or_path: baseModel }));
    const { code, out } = await server.run([
      "checkpoint",
      "import",
      "my adapter",
      "--type=sampler",
    ]);
    expect(code).toBe(0);
    expect(out).toMatch(/^Tinker Path +tinker:\/\/\S+\/sampler_weights\/my-adapter$/m);
  });

  it.each([
    ["nothing", {}, "has no adapter_config.json"],
    ["not JSON", { "adapter_config.json": "{" }, "it is not JSON"],
    ["no rank", { "adapter_config.json": "{}" }, "it has no rank (r)"],
    ["no base", { "adapter_config.json": '{"r":4}' }, "does not name its base model"],
  ])("refuses a folder with %s", async (_, files, message) => {
    const folder = mkdtempSync(path.join(server.folder, "odd-"));
    for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
    const { code, err } = await server.run(["checkpoint", "import", folder]);
    expect(code).toBe(1);
    expect(err).toContain(message);
  });

  it("reports the server's reason for refusing an adapter", async () => {
    const llama = path.resolve(adapterFolder, "../../llama/adapter");
    const { code, err } = await server.run([
      "checkpoint",
      "import",
      llama,
      "--base-model",
      baseModel,
    ]);
    expect(code).toBe(1);
    expect(err).toMatch(/Error: The server refused the adapter\.\n.+/);
  });
});

describe("checkpoint import from lost-and-found", () => {
  let folder: string;
  beforeAll(async () => {
    // As kill -9 leaves the directory, without the log that has the last commits.
    const dataDir = path.join(server.folder, "cut-off");
    cpSync(path.join(server.folder, "../data"), dataDir, {
      recursive: true,
      filter: (file) => !/(lock\.db.*|-shm|-wal)$/.test(file),
    });
    const later = await startServer({ port: 0, dataDir, logLevel: "silent" });
    await later.close();
    const found = path.join(dataDir, "lost-and-found/checkpoints");
    const manifestOf = (name: string) =>
      readFileSync(path.join(found, name, "manifest.json"), "utf8");
    const name = readdirSync(found).find((entry) => manifestOf(entry).includes(trained));
    folder = path.join(found, name!);
  });

  it("restores the checkpoint, with its optimizer", async () => {
    const { tinker_path: back, base_model: base } = await server.json<{
      tinker_path: string;
      base_model: string;
    }>(["checkpoint", "import", folder]);
    expect(base).toBe(baseModel);
    const next = async (from: string): Promise<unknown> => {
      const training = await server.service.createTrainingClientFromStateWithOptimizer(from);
      const row = { modelInput: [1, 2], lossFnInputs: { target_tokens: [2, 3] } };
      await training.trainStep([row], "cross_entropy", { adamParams: { learningRate: 1e-2 } });
      return (await training.forward([row], "cross_entropy")).metrics;
    };
    expect(await next(back)).toEqual(await next(trained));
  });

  it("names the damaged file of a refused checkpoint", async () => {
    const damaged = path.join(server.folder, "damaged");
    cpSync(folder, damaged, { recursive: true });
    const file = path.join(damaged, "optimizer.safetensors");
    const bytes = readFileSync(file);
    bytes[bytes.length - 5]! ^= 4;
    writeFileSync(file, bytes);
    const { code, err } = await server.run(["checkpoint", "import", damaged]);
    expect(code).toBe(1);
    expect(err).toContain("optimizer.safetensors");
  });

  it("reads the layout of the Tinker service too", async () => {
    const options = ["--output", "service", "--layout", "tinker", "--base-model", modelFolder];
    expect(await server.run(["checkpoint", "export", trained, ...options])).toMatchObject({
      code: 0,
    });
    const exported = path.join(server.folder, "service");
    const { tinker_path: back } = await server.json<{ tinker_path: string }>([
      "checkpoint",
      "import",
      exported,
      "--base-model",
      baseModel,
    ]);
    const { destination } = await server.json<{ destination: string }>([
      "checkpoint",
      "download",
      back,
    ]);
    const { tensors } = await read(destination);
    expect([...tensors.keys()]).toContain("base_model.model.lm_head.lora_A.weight");
    expect(tensors).toEqual((await read(exported)).tensors);
  });
});

describe("checkpoint export", () => {
  it("writes a checkpoint as a PEFT adapter", async () => {
    const args = ["checkpoint", "export", trained, "-o", "exported", "--base-model", modelFolder];
    const destination = path.join(server.folder, "exported");
    expect(await server.json(args)).toEqual({
      source: trained,
      destination,
      rank: 4,
      alpha: 32,
      targets: expect.arrayContaining(["q_proj", "lm_head"]) as string[],
    });
    expect((await read(destination)).rank).toBe(4);
    const again = await server.run(args);
    expect(again).toMatchObject({ code: 1, out: "" });
    expect(again.err).toContain("exists");
    expect(await server.run([...args, "--force"])).toMatchObject({ code: 0 });
  });

  it("has the matrices of the Hugging Face model, which may be fused", async () => {
    const fixture = path.resolve(modelFolder, "../../qwen3_5");
    const model = ["--base-model", path.join(fixture, "model")];
    const source = path.join(fixture, "adapter");
    for (const [layout, wanted] of [
      ["peft", ["in_proj_qkv"]],
      ["tinker", ["in_proj_q", "in_proj_k", "in_proj_v"]],
    ] as const) {
      const args = ["checkpoint", "export", source, ...model, "--layout", layout, "-o", layout];
      const { targets } = await server.json<{ targets: string[] }>(args);
      const parts = targets.filter((name) => /^in_proj_(q|k|v|qkv)$/.test(name));
      expect(parts).toEqual(wanted);
    }
  });

  it("leaves the unembedding out on request", async () => {
    const options = ["--output", "without", "--no-unembed", "--base-model", modelFolder];
    const { out } = await server.run(["checkpoint", "export", adapterFolder, ...options]);
    expect(out).toMatch(/^Targets .*q_proj/m);
    const { targets } = await read(path.join(server.folder, "without"));
    expect(targets).not.toContain("lm_head");
  });

  it("needs no server for a folder, and finds the model under the server's name for it", async () => {
    const alone = { env: { TINKER_BASE_URL: undefined } };
    const options = ["--base-model", modelFolder, "-o", "alone"];
    const folder = await server.run(["checkpoint", "export", adapterFolder, ...options], alone);
    expect(folder).toMatchObject({ code: 0 });
    const bring = ["checkpoint", "import", adapterFolder, "--base-model", modelFolder];
    const { tinker_path: source } = await server.json<{ tinker_path: string }>(bring);
    expect(await server.run(["checkpoint", "export", source, "-o", "named"])).toMatchObject({
      code: 0,
    });
  });

  it("explains how to name a base model that is not found", async () => {
    const env = { HF_HUB_OFFLINE: "1" };
    const { code, err } = await server.run(["checkpoint", "export", trained, "-o", "x"], { env });
    expect(code).toBe(1);
    expect(err).toContain("Error: Cannot load the base model qwen3");
    expect(err).toContain("Pass its folder or its id on the hub with --base-model.");
    const nothing = await server.run(["checkpoint", "export", "nowhere", "-o", "x"]);
    expect(nothing.err).toContain(
      "nowhere is neither a checkpoint path nor a folder of a run or of an adapter.",
    );
  });
});

describe("checkpoint merge", () => {
  it("writes a model that needs no adapter", async () => {
    const options = ["-o", "merged", "--base-model", modelFolder, "--dtype", "BF16"];
    const destination = path.join(server.folder, "merged");
    expect(await server.json(["checkpoint", "merge", trained, ...options])).toEqual({
      source: trained,
      base: modelFolder,
      destination,
      dtype: "BF16",
    });
    expect(readdirSync(destination)).toEqual(
      expect.arrayContaining(["config.json", "model.safetensors", "tokenizer.json"]),
    );
    const half = readFileSync(path.join(destination, "model.safetensors")).length;
    const whole = readFileSync(path.join(modelFolder, "model.safetensors")).length;
    expect(half).toBeLessThan(whole * 0.6);
    expect(await readModelConfig(destination)).toMatchObject({ vocabSize: 310 });
  });

  it("does not touch an existing folder", async () => {
    mkdirSync(path.join(server.folder, "taken"));
    writeFileSync(path.join(server.folder, "taken/mine"), "");
    const options = ["--output", "taken", "--base-model", modelFolder];
    const { code, err } = await server.run(["checkpoint", "merge", adapterFolder, ...options]);
    expect(code).toBe(1);
    expect(err).toMatch(/^Error: .*taken.*exists/);
    expect(readdirSync(path.join(server.folder, "taken"))).toEqual(["mine"]);
  });
});
