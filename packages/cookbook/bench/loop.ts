// What the training loop adds to bare calls of `trainStep`: the same steps on a model of size M (hidden 1024,
// eight layers, 4 x 128 tokens, rank 32), turn by turn in one process, so that both see the same machine. Time of the
// processor says the same where others disturb the clock.
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { train } from "@tinker-ts/cookbook/supervised";
import { Datum, ServiceClient } from "tinker-ts";
import { writeSafetensors } from "@tinker-ts/hub/weights";

const goal = 0.03;
const rounds = 2;
const steps = 3;
const rank = 32;

const config = {
  architectures: ["Qwen3ForCausalLM"],
  model_type: "qwen3",
  vocab_size: 32_000,
  hidden_size: 1024,
  intermediate_size: 3072,
  num_hidden_layers: 8,
  num_attention_heads: 16,
  num_key_value_heads: 8,
  head_dim: 128,
  rms_norm_eps: 1e-6,
  max_position_embeddings: 8192,
  tie_word_embeddings: true,
};

const folder = await mkdtemp(path.join(tmpdir(), "tinker-ts-loop-bench-"));
try {
  process.env["TINKER_TS_DATA_DIR"] = path.join(folder, "data");
  const model = path.join(folder, "model");
  await writeModel(model);
  const service = new ServiceClient({ baseUrl: "local:" });
  const bare: Cost[] = [];
  const looped: Cost[] = [];
  await bareSteps(service, model); // compiles graphs
  for (let round = 0; round < rounds; round++) {
    bare.push(await bareSteps(service, model));
    looped.push(await loopedSteps(service, model, round));
  }
  await service.close();
  for (const kind of ["clockMs", "processorMs"] as const) {
    const [alone, inLoop] = [bare, looped].map((list) =>
      Math.min(...list.map((cost) => cost[kind])),
    );
    const overhead = inLoop! / alone! - 1;
    console.log(`${kind} of a step: alone ${alone!.toFixed(0)}, in the loop ${inLoop!.toFixed(0)}`);
    console.log(`overhead ${(overhead * 100).toFixed(1)} %, goal: at most ${goal * 100} %`);
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}

/** What a step takes. */
interface Cost {
  readonly clockMs: number;
  readonly processorMs: number;
}

function mark(): Cost {
  const { user, system } = process.cpuUsage();
  return { clockMs: performance.now(), processorMs: (user + system) / 1000 };
}

function perStep(marks: readonly Cost[]): Cost {
  const [first, last] = [marks[0]!, marks.at(-1)!];
  return {
    clockMs: (last.clockMs - first.clockMs) / steps,
    processorMs: (last.processorMs - first.processorMs) / steps,
  };
}

function batch(step: number): Datum[] {
  return Array.from({ length: 4 }, (_, row) => {
    const tokens = Int32Array.from(
      { length: 129 },
      (_unused, i) => (i * 7 + row * 31 + step) % 300,
    );
    return new Datum({
      modelInput: tokens.subarray(0, -1),
      lossFnInputs: {
        target_tokens: BigInt64Array.from(tokens.subarray(1), BigInt),
        weights: new Float32Array(128).fill(1 / 128),
      },
    });
  });
}

/** Without the first step. */
async function bareSteps(service: ServiceClient, baseModel: string): Promise<Cost> {
  const training = await service.createLoraTrainingClient({ baseModel, rank, seed: 0 });
  const marks: Cost[] = [];
  for (let step = 0; step <= steps; step++) {
    await training.trainStep(batch(step), "cross_entropy", { adamParams: { learningRate: 1e-4 } });
    marks.push(mark());
  }
  return perStep(marks);
}

async function loopedSteps(service: ServiceClient, model: string, round: number): Promise<Cost> {
  const marks: Cost[] = [];
  await train({
    service,
    model,
    data: { batchesPerEpoch: steps + 1, batch: (_, index) => batch(index) },
    folder: path.join(folder, `run-${round}`),
    loraRank: rank,
    lrSchedule: "constant",
    onProgress: ({ step }) => step > 0 && marks.push(mark()),
  });
  return perStep(marks);
}

async function writeModel(target: string): Promise<void> {
  const fixture = path.resolve(import.meta.dirname, "../../engine/test/fixtures/qwen3/model");
  await mkdir(target);
  await writeFile(path.join(target, "config.json"), JSON.stringify(config));
  for (const name of ["tokenizer.json", "tokenizer_config.json"]) {
    await copyFile(path.join(fixture, name), path.join(target, name));
  }
  const {
    hidden_size: hidden,
    intermediate_size: inner,
    head_dim: head,
    vocab_size: vocab,
  } = config;
  const { num_attention_heads: heads, num_key_value_heads: kvHeads } = config;
  const layer: Readonly<Record<string, readonly number[]>> = {
    input_layernorm: [hidden],
    post_attention_layernorm: [hidden],
    "self_attn.q_norm": [head],
    "self_attn.k_norm": [head],
    "self_attn.q_proj": [heads * head, hidden],
    "self_attn.k_proj": [kvHeads * head, hidden],
    "self_attn.v_proj": [kvHeads * head, hidden],
    "self_attn.o_proj": [hidden, heads * head],
    "mlp.gate_proj": [inner, hidden],
    "mlp.up_proj": [inner, hidden],
    "mlp.down_proj": [hidden, inner],
  };
  const shapes = new Map<string, readonly number[]>([
    ["model.embed_tokens.weight", [vocab, hidden]],
    ["model.norm.weight", [hidden]],
  ]);
  for (let index = 0; index < config.num_hidden_layers; index++) {
    for (const [name, shape] of Object.entries(layer)) {
      shapes.set(`model.layers.${index}.${name}.weight`, shape);
    }
  }
  await writeSafetensors(
    path.join(target, "model.safetensors"),
    [...shapes].map(([name, shape]) => {
      const length = shape.reduce((product, size) => product * size, 1);
      return { name, shape, data: () => draw(shape, length) };
    }),
  );
}

/** Norms around 1, products of a size that keeps activations where they are. */
function draw(shape: readonly number[], length: number): Uint8Array {
  const [scale, offset] = shape.length === 1 ? [0.1, 1] : [Math.sqrt(3 / shape[1]!), 0];
  const values = new Float32Array(length);
  let state = length;
  for (let index = 0; index < length; index++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    values[index] = (state / 2 ** 31) * scale + offset;
  }
  return new Uint8Array(values.buffer);
}
