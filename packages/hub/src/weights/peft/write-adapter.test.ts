import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { readJsonObject } from "../../files/json.js";
import { engineErrorOf } from "../../../test/support/expect-engine-error.js";
import { modelFixture } from "../../../test/support/fixtures.js";
import { useTemporaryFolder } from "../../../test/support/temporary-folder.js";
import { tinyAdapter } from "../../../test/support/tiny-adapter.js";
import { tinyLlama } from "../../../test/support/tiny-model.js";
import { parseModelConfig } from "../model-config.js";
import { readModelConfig } from "../model-folder.js";
import type { LoraAdapter, OptimizerState } from "./adapter.js";
import { readOptimizer } from "./optimizer-file.js";
import { readAdapter } from "./read-adapter.js";
import { isCompleteCheckpoint, writeAdapter } from "./write-adapter.js";

const inFolder = useTemporaryFolder();
const config = parseModelConfig(tinyLlama);

function optimizerOf(adapter: LoraAdapter): OptimizerState {
  const moments = (factor: number) =>
    new Map(
      [...adapter.tensors].map(([name, { shape, data }]) => [
        name,
        { shape, data: data.map((value) => value * factor) },
      ]),
    );
  return { step: 41, firstMoments: moments(0.1), secondMoments: moments(1e-20) };
}

describe("a written adapter", () => {
  it("is read back bit for bit, with all of its settings", async () => {
    for (const flags of [
      { trainAttn: true, trainMlp: true, trainUnembed: true },
      { trainAttn: false, trainMlp: true, trainUnembed: false },
    ]) {
      const adapter = tinyAdapter(config, flags);
      await writeAdapter(inFolder("adapter"), adapter, { overwrite: true });
      expect(await readAdapter(inFolder("adapter"), { config })).toEqual(adapter);
    }
  });

  it("has the files, names and fields that PEFT reads", async () => {
    await writeAdapter(inFolder("adapter"), tinyAdapter(config));
    expect((await readdir(inFolder("adapter"))).toSorted()).toEqual([
      "adapter_config.json",
      "adapter_model.safetensors",
      "checkpoint_complete",
    ]);
    expect(await readJsonObject(inFolder("adapter", "adapter_config.json"))).toMatchObject({
      peft_type: "LORA",
      task_type: "CAUSAL_LM",
      r: 3,
      lora_alpha: 32,
      bias: "none",
      base_model_name_or_path: "tiny/llama",
    });
    const written = await readFile(inFolder("adapter", "adapter_model.safetensors"), "latin1");
    expect(written).toContain('"base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight"');
    expect(written).toContain('"base_model.model.lm_head.lora_B.weight"');
  });

  it("names the unembedding as in archives of the Tinker service on request", async () => {
    await writeAdapter(inFolder("adapter"), tinyAdapter(config), { layout: "tinker" });
    const written = await readFile(inFolder("adapter", "adapter_model.safetensors"), "latin1");
    expect(written).toContain('"base_model.model.model.unembed_tokens.lora_B.weight"');
    expect(written).toContain('"base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight"');
    expect(written).not.toContain("lm_head");
  });

  it("has the same bytes each time, and those of the fixture's tensors", async () => {
    const model = await readModelConfig(modelFixture("qwen3/model"));
    const adapter = await readAdapter(modelFixture("qwen3/adapter"), { config: model });
    await writeAdapter(inFolder("a"), adapter);
    await writeAdapter(inFolder("b"), adapter);
    const [a, b, original] = await Promise.all(
      [inFolder("a"), inFolder("b"), modelFixture("qwen3/adapter")].map((folder) =>
        readFile(`${folder}/adapter_model.safetensors`),
      ),
    );
    expect(a?.equals(b ?? Buffer.alloc(0))).toBe(true);
    const dataBytes = [...adapter.tensors.values()].reduce(
      (sum, { data }) => sum + data.byteLength,
      0,
    );
    expect(a?.subarray(-dataBytes).equals(original?.subarray(-dataBytes) ?? Buffer.alloc(0))).toBe(
      true,
    );
  });

  it("keeps to the matrices it was made for", async () => {
    const full = tinyAdapter(config, { trainAttn: true, trainMlp: false, trainUnembed: false });
    const zeroed = new Map(
      [...full.tensors].map(([name, tensor]) =>
        name.includes("q_proj")
          ? [name, tensor]
          : [name, { ...tensor, data: tensor.data.map(() => 0) }],
      ),
    );
    const partial: LoraAdapter = { ...full, targets: ["q_proj"], tensors: zeroed };
    await writeAdapter(inFolder("adapter"), partial);
    const text = await readFile(inFolder("adapter", "adapter_model.safetensors"), "latin1");
    expect(text).not.toContain("k_proj");
    expect(await readAdapter(inFolder("adapter"), { config })).toEqual(partial);
  });

  it("leaves out the unembedding on request", async () => {
    await writeAdapter(inFolder("adapter"), tinyAdapter(config), { includeUnembed: false });
    const adapter = await readAdapter(inFolder("adapter"), { config });
    const flags = { trainAttn: true, trainMlp: true, trainUnembed: false };
    expect(adapter).toEqual(tinyAdapter(config, flags));
  });

  it("stores the optimizer's state bit for bit", async () => {
    const adapter = tinyAdapter(config);
    const optimizer = optimizerOf(adapter);
    await writeAdapter(inFolder("adapter"), adapter, { optimizer });
    expect(await readOptimizer(inFolder("adapter"), adapter)).toEqual(optimizer);
    await rm(inFolder("adapter", "optimizer.safetensors"));
    expect(await readOptimizer(inFolder("adapter"), adapter)).toBeNull();
  });
});

describe("writing a folder", () => {
  it("replaces an existing one only with overwrite", async () => {
    const adapter = tinyAdapter(config);
    await writeAdapter(inFolder("adapter"), adapter);
    await writeFile(inFolder("adapter", "old"), "");
    const again = () => writeAdapter(inFolder("adapter"), adapter);
    expect(await engineErrorOf("folder_exists", again)).toContain("overwrite: true");
    await writeAdapter(inFolder("adapter"), adapter, { overwrite: true });
    expect(await readdir(inFolder("adapter"))).not.toContain("old");
    expect(await readdir(inFolder())).toEqual(["adapter"]);
  });

  it("leaves only the old folder when it fails or is aborted", async () => {
    const adapter = tinyAdapter(config);
    await mkdir(inFolder("adapter"));
    await writeFile(inFolder("adapter", "old"), "");
    const reason = new Error("enough");
    const aborted = writeAdapter(inFolder("adapter"), adapter, {
      overwrite: true,
      signal: AbortSignal.abort(reason),
    });
    await expect(aborted).rejects.toBe(reason);
    const optimizer = { ...optimizerOf(adapter), firstMoments: new Map() };
    const failed = () => writeAdapter(inFolder("adapter"), adapter, { overwrite: true, optimizer });
    expect(await engineErrorOf("invalid_tensor", failed)).toContain("firstMoments");
    expect(await readdir(inFolder())).toEqual(["adapter"]);
    expect(await readdir(inFolder("adapter"))).toEqual(["old"]);
  });

  it("marks a checkpoint as complete", async () => {
    await writeAdapter(inFolder("adapter"), tinyAdapter(config));
    expect(await isCompleteCheckpoint(inFolder("adapter"))).toBe(true);
    await rm(inFolder("adapter", "checkpoint_complete"));
    expect(await isCompleteCheckpoint(inFolder("adapter"))).toBe(false);
  });

  it("refuses tensors that are not factors of the adapter's rank", async () => {
    const adapter = tinyAdapter(config);
    const wrongRank = () => writeAdapter(inFolder("adapter"), { ...adapter, rank: 4 });
    expect(await engineErrorOf("invalid_tensor", wrongRank)).toContain("rank 4");
    const tensors = new Map([["model.norm.weight", { shape: [1], data: new Float32Array(1) }]]);
    const other = () => writeAdapter(inFolder("adapter"), { ...adapter, tensors });
    expect(await engineErrorOf("invalid_tensor", other)).toContain("model.norm.weight");
  });

  it("refuses an optimizer for a part of the adapter", async () => {
    const adapter = tinyAdapter(config);
    const optimizer = optimizerOf(adapter);
    const write = () => writeAdapter(inFolder("x"), adapter, { optimizer, includeUnembed: false });
    expect(await engineErrorOf("invalid_options", write)).toContain("includeUnembed");
  });
});

describe("an optimizer's file", () => {
  it("is refused when it belongs to another adapter", async () => {
    const attention = tinyAdapter(config, {
      trainAttn: true,
      trainMlp: false,
      trainUnembed: false,
    });
    await writeAdapter(inFolder("adapter"), attention, { optimizer: optimizerOf(attention) });
    const read = () => readOptimizer(inFolder("adapter"), tinyAdapter(config));
    expect(await engineErrorOf("invalid_optimizer", read)).toContain("gate_proj");
  });
});
