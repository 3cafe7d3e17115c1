import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import * as tar from "tar";
import { RequestFailedError, ServiceClient, type TrainingClient } from "tinker-ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startServer, type RunningServer } from "../src/index.js";
import { createLogger } from "../src/log/logger.js";
import { realModels, recurrentModels } from "./support/real-models.js";

const data = [
  { modelInput: [5, 8, 13], lossFnInputs: { target_tokens: [8, 13, 21], weights: [1, 1, 1] } },
];
const key = "tml-alice-key";

let dataDir: string;
let server: RunningServer;
let service: ServiceClient;
let run: TrainingClient;
let archive: Uint8Array<ArrayBuffer>;

beforeAll(async () => {
  dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-import-"));
  server = await startServer({
    port: 0,
    dataDir,
    models: { ...realModels, ...recurrentModels },
    logLevel: "silent",
    apiKeys: [key, "tml-bob-key"],
    limits: { maxImportBytes: 1_000_000 },
  });
  service = new ServiceClient({ baseUrl: server.url, apiKey: key, telemetry: false });
  run = await service.createLoraTrainingClient({ baseModel: "qwen3", rank: 4, seed: 1 });
  await run.trainStep(data, "cross_entropy", { adamParams: { learningRate: 0.1 } });
  const { path: saved } = await run.saveState("first");
  const { url } = await service.createRestClient().getCheckpointArchiveUrlFromTinkerPath(saved);
  archive = new Uint8Array(await (await fetch(url)).arrayBuffer());
});

afterAll(async () => {
  await service.close();
  await server.close();
  rmSync(dataDir, { recursive: true, force: true });
});

function upload(
  checkpointId: string,
  body: Uint8Array<ArrayBuffer>,
  { runId = run.modelId, apiKey = key } = {},
): Promise<Response> {
  const page = `/api/v1/training_runs/${runId}/checkpoints/${checkpointId}/archive`;
  const headers = { "x-api-key": apiKey };
  return fetch(`${server.url}${page}`, { method: "PUT", headers, body });
}

/** An archive that is small only as long as it is packed. */
function archiveOfZeros(
  sizeBytes: number,
  name = "adapter_model.safetensors",
  firstNumber = 0,
): Uint8Array<ArrayBuffer> {
  const file = path.join(dataDir, name);
  const bytes = Buffer.alloc(sizeBytes);
  bytes.writeBigUInt64LE(BigInt(firstNumber));
  writeFileSync(file, bytes);
  tar.create({ file: `${file}.tgz`, gzip: true, sync: true, cwd: dataDir }, [path.basename(file)]);
  return Uint8Array.from(readFileSync(`${file}.tgz`));
}

const lossOf = async (client: TrainingClient) =>
  (await client.forward(data, "cross_entropy")).metrics["loss:sum"];

it("brings an adapter in with its optimizer, as good as one saved here", async () => {
  expect((await upload("weights/brought", archive)).status).toBe(204);
  const brought = `tinker://${run.modelId}/weights/brought`;
  const copy = await service.createTrainingClientFromStateWithOptimizer(brought);
  expect(await lossOf(copy)).toBe(await lossOf(run));
  const steps = await Promise.all(
    [run, copy].map((client) =>
      client.trainStep(data, "cross_entropy", { adamParams: { learningRate: 0.1 } }),
    ),
  );
  expect(steps[1]).toEqual(steps[0]);
  expect(await lossOf(copy)).toBe(await lossOf(run));
});

it("keeps weights to sample from without an optimizer", async () => {
  expect((await upload("sampler_weights/brought", archive)).status).toBe(204);
  const modelPath = `tinker://${run.modelId}/sampler_weights/brought`;
  const sampler = await service.createSamplingClient({ modelPath });
  expect(
    (await sampler.sample({ prompt: [5], samplingParams: { maxTokens: 2 } })).sequences,
  ).toHaveLength(1);
  await expect(run.loadStateWithOptimizer(modelPath)).rejects.toThrow(RequestFailedError);
});

it("samples from an adapter that has one factor for several matrices, and refuses to train it", async () => {
  const fused = path.join(recurrentModels.qwen3_5, "../adapter_fused");
  const file = path.join(dataDir, "fused.tgz");
  tar.create({ file, gzip: true, sync: true, cwd: fused }, readdirSync(fused));
  const packed = Uint8Array.from(readFileSync(file));
  const own = await service.createLoraTrainingClient({ baseModel: "qwen3_5", rank: 4, seed: 1 });
  const refused = await upload("weights/fused", packed, { runId: own.modelId });
  expect(refused.status).toBe(400);
  expect(await refused.text()).toMatch(/one adapter on in_proj_qkv.*Import it as sampler_weights/);
  const taken = await upload("sampler_weights/fused", packed, { runId: own.modelId });
  expect(taken.status).toBe(204);
  const modelPath = `tinker://${own.modelId}/sampler_weights/fused`;
  const expected = JSON.parse(readFileSync(path.join(fused, "../expected.json"), "utf8")) as Record<
    "data",
    { tokens: number[] }[]
  > &
    Record<"fused_logprobs", number[][]>;
  const sampler = await service.createSamplingClient({ modelPath });
  const tokens = expected.data[0]!.tokens;
  const found = await sampler.computeLogprobs(tokens);
  for (const [index, wanted] of expected.fused_logprobs[0]!.slice(0, -1).entries()) {
    expect(Math.abs((found[index + 1] ?? NaN) - wanted)).toBeLessThan(1e-4);
  }
});

it.each([
  ["what is no archive", () => new Uint8Array(2000).fill(65), 400],
  ["an empty archive", () => Uint8Array.from(gzipSync(new Uint8Array(1024))), 400],
  ["half an archive", () => archive.slice(0, archive.length / 2), 400],
  ["more than fits", () => new Uint8Array(1_100_000), 413],
  ["what becomes more than fits", () => archiveOfZeros(1_100_000), 413],
  [
    "a list of tensors of 3 MB",
    () => archiveOfZeros(900_000, "adapter_model.safetensors", 2_900_000),
    400,
  ],
  ["a configuration of 600 kB", () => archiveOfZeros(600_000, "adapter_config.json"), 400],
])("refuses %s and leaves nothing behind", async (_, body, status) => {
  const folders = readdirSync(path.join(dataDir, "checkpoints"));
  const response = await upload("weights/bad", body());
  expect(response.status).toBe(status);
  expect(await response.text()).not.toContain(dataDir);
  expect(readdirSync(path.join(dataDir, "checkpoints"))).toEqual(folders);
});

it.each([
  ["a name that is taken", "weights/first", {}, 409],
  ["a name that leads out of the folder", "weights/..%2f..%2fx", {}, 400],
  ["a name that cannot be read", "weights/%ZZ", {}, 400],
  ["another kind of checkpoint", "other/x", {}, 400],
  ["a run that does not exist", "weights/x", { runId: "nope:train:0" }, 404],
  ["a run of another owner", "weights/x", { apiKey: "tml-bob-key" }, 404],
  ["a key that is not known", "weights/x", { apiKey: "tml-nobody" }, 401],
])("refuses %s", async (_, checkpointId, where, status) => {
  expect((await upload(checkpointId, archive, where)).status).toBe(status);
});

/** The header of an adapter's weights, and the bytes behind it. */
function weightsOf(packed: Uint8Array) {
  const folder = mkdtempSync(path.join(dataDir, "unpacked-"));
  const file = path.join(folder, "archive.tgz");
  writeFileSync(file, packed);
  tar.extract({ file, cwd: folder, sync: true });
  const bytes = readFileSync(path.join(folder, "adapter_model.safetensors"));
  const end = 8 + Number(bytes.readBigUInt64LE());
  const header = JSON.parse(bytes.subarray(8, end).toString()) as Record<string, object>;
  const { __metadata__: _, ...tensors } = header;
  return { tensors, data: bytes.subarray(end), files: readdirSync(folder), start: end };
}

it("hands archives out with the names that the Python cookbook's merge knows", async () => {
  const page = `/api/v1/training_runs/${run.modelId}/checkpoints/weights/first/archive`;
  const get = (layout: string) =>
    fetch(`${server.url}${page}?layout=${layout}`, { headers: { "x-api-key": key } });
  const plain = weightsOf(archive);
  const tinker = weightsOf(new Uint8Array(await (await get("tinker")).arrayBuffer()));
  expect(tinker.files.toSorted()).toEqual([
    "adapter_config.json",
    "adapter_model.safetensors",
    "archive.tgz",
  ]);
  expect(tinker.data.equals(plain.data)).toBe(true);
  expect(tinker.start % 8).toBe(0);
  const renamed = Object.entries(plain.tensors).map(([name, tensor]) => [
    name.replace("model.lm_head.", "model.model.unembed_tokens."),
    tensor,
  ]);
  expect(tinker.tensors).toEqual(Object.fromEntries(renamed));
  expect(Object.keys(tinker.tensors)).toContain(
    "base_model.model.model.unembed_tokens.lora_A.weight",
  );
  // What the merge does with a name: strip PEFT's prefix, then say which matrix the unembedding is.
  const model = readFileSync(path.join(realModels.qwen3, "model.safetensors"));
  const known = model.subarray(8, 8 + Number(model.readBigUInt64LE())).toString();
  const head = known.includes('"lm_head.weight"') ? "lm_head" : "model.embed_tokens";
  for (const name of Object.keys(tinker.tensors)) {
    const target = name
      .replace(/\.lora_[AB]/, "")
      .replace("base_model.model.", "")
      .replace("model.unembed_tokens", head);
    expect(known).toContain(`"${target}"`);
  }
  const unknown = await get("other");
  expect(unknown.status).toBe(400);
  expect(await unknown.text()).toContain('layout: \\"other\\" is not known');
});

it("notes an upload that is given up in one quiet line", async () => {
  const lines: string[] = [];
  const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-upload-"));
  const other = await startServer({
    port: 0,
    dataDir: folder,
    models: realModels,
    logger: createLogger("info", (line) => lines.push(line)),
  });
  const client = new ServiceClient({ baseUrl: other.url, apiKey: key, telemetry: false });
  try {
    const model = await client.createLoraTrainingClient({ baseModel: "qwen3", rank: 4 });
    lines.length = 0;
    const abort = new AbortController();
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(archive.subarray(0, archive.length >> 1)),
    });
    const page = `/api/v1/training_runs/${model.modelId}/checkpoints/weights/x/archive`;
    const init = { method: "PUT", body, duplex: "half", signal: abort.signal } as RequestInit;
    const sent = fetch(`${other.url}${page}`, init).catch(() => undefined);
    const uploads = () =>
      readdirSync(path.join(folder, "checkpoints")).filter((name) => name.startsWith("upload-"));
    await expect.poll(() => uploads().length).toBe(1);
    abort.abort();
    await sent;
    await expect.poll(() => uploads().length).toBe(0);
    await expect.poll(() => lines.length).toBe(1);
    expect(lines[0]).toContain("info  a client went away");
  } finally {
    await client.close();
    await other.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
