import { open } from "node:fs/promises";
import type { ModelConfig } from "@tinker-ts/engine";

/** Numbers of a block of q8_0: a scale in 16 bits, then so many bytes. */
const blockLength = 32;
const blockBytes = 2 + blockLength;
/** Where tensors begin: at multiples of it. */
const alignment = 32;
const types = { f32: 0, q8_0: 8 } as const;
const kinds = { uint32: 4, float32: 6, string: 8, array: 9 } as const;

interface GgufTensor {
  readonly name: string;
  /** The fastest-changing size first. */
  readonly shape: readonly number[];
}

/** Writes a model of random q8_0 weights in the form that llama.cpp reads. */
export async function writeGguf(path: string, config: ModelConfig): Promise<void> {
  const tensors = tensorsOf(config);
  const infos: Uint8Array[] = [];
  let offset = 0;
  for (const { name, shape } of tensors) {
    const type = shape.length === 1 ? types.f32 : types.q8_0;
    infos.push(
      text(name),
      uint32(shape.length),
      ...shape.map(uint64),
      uint32(type),
      uint64(offset),
    );
    offset += padded(sizeOf(shape));
  }
  const metadata = metadataOf(config);
  const counts = [uint64(tensors.length), uint64(metadata.length)];
  const head = Buffer.concat([Buffer.from("GGUF"), uint32(3), ...counts, ...metadata, ...infos]);
  const file = await open(path, "w");
  try {
    await file.write(Buffer.concat([head, Buffer.alloc(padded(head.length) - head.length)]));
    for (const { shape } of tensors) await file.write(randomBytes(shape));
  } finally {
    await file.close();
  }
}

function tensorsOf(config: ModelConfig): readonly GgufTensor[] {
  const { hiddenSize: hidden, intermediateSize: inner, heads, kvHeads, headDim } = config;
  const [queries, keys] = [heads * headDim, kvHeads * headDim];
  const layer = (index: number): readonly GgufTensor[] =>
    Object.entries({
      attn_norm: [hidden],
      attn_q: [hidden, queries],
      attn_k: [hidden, keys],
      attn_v: [hidden, keys],
      attn_q_norm: [headDim],
      attn_k_norm: [headDim],
      attn_output: [queries, hidden],
      ffn_norm: [hidden],
      ffn_gate: [hidden, inner],
      ffn_up: [hidden, inner],
      ffn_down: [inner, hidden],
    }).map(([name, shape]) => ({ name: `blk.${index}.${name}.weight`, shape }));
  const table = [hidden, config.vocabSize];
  return [
    { name: "token_embd.weight", shape: table },
    { name: "output_norm.weight", shape: [hidden] },
    ...(config.tiedEmbeddings ? [] : [{ name: "output.weight", shape: table }]),
    ...Array.from({ length: config.layers }, (_, index) => layer(index)).flat(),
  ];
}

function metadataOf(config: ModelConfig): readonly Uint8Array[] {
  const entry = (key: string, kind: number, value: Uint8Array): Uint8Array =>
    Buffer.concat([text(key), uint32(kind), value]);
  const list = (kind: number, items: readonly Uint8Array[]): Uint8Array =>
    Buffer.concat([uint32(kind), uint64(items.length), ...items]);
  const whole = {
    block_count: config.layers,
    context_length: config.contextLength,
    embedding_length: config.hiddenSize,
    feed_forward_length: config.intermediateSize,
    "attention.head_count": config.heads,
    "attention.head_count_kv": config.kvHeads,
    "attention.key_length": config.headDim,
    "attention.value_length": config.headDim,
  };
  const real = {
    "attention.layer_norm_rms_epsilon": config.normEpsilon,
    "rope.freq_base": config.rope.theta,
  };
  const tokens = Array.from({ length: config.vocabSize }, (_, token) => text(`t${token}`));
  return [
    entry("general.architecture", kinds.string, text("qwen3")),
    ...Object.entries(whole).map(([key, n]) => entry(`qwen3.${key}`, kinds.uint32, uint32(n))),
    ...Object.entries(real).map(([key, x]) => entry(`qwen3.${key}`, kinds.float32, float32(x))),
    entry("tokenizer.ggml.model", kinds.string, text("gpt2")),
    entry("tokenizer.ggml.pre", kinds.string, text("qwen2")),
    entry("tokenizer.ggml.tokens", kinds.array, list(kinds.string, tokens)),
    entry("tokenizer.ggml.merges", kinds.array, list(kinds.string, [text("t 1")])),
  ];
}

/** Ones for a norm; for a matrix blocks of random bytes whose scale keeps activations at a natural size. */
function randomBytes(shape: readonly number[]): Uint8Array {
  const bytes = Buffer.alloc(padded(sizeOf(shape)));
  const [inputs = 0, outputs] = shape;
  if (outputs === undefined) {
    for (let i = 0; i < inputs; i++) bytes.writeFloatLE(1, 4 * i);
    return bytes;
  }
  const scale = halfBits(Math.sqrt(3 / inputs) / 128);
  let state = 1;
  for (let start = 0; start < sizeOf(shape); start += blockBytes) {
    bytes.writeUInt16LE(scale, start);
    for (let i = start + 2; i < start + blockBytes; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) | 0;
      bytes[i] = state >>> 24;
    }
  }
  return bytes;
}

function sizeOf(shape: readonly number[]): number {
  const elements = shape.reduce((product, dim) => product * dim, 1);
  return shape.length === 1 ? 4 * elements : (elements / blockLength) * blockBytes;
}

function padded(bytes: number): number {
  return Math.ceil(bytes / alignment) * alignment;
}

/** A positive number of ordinary size in 16 bits. */
function halfBits(value: number): number {
  const exponent = Math.floor(Math.log2(value));
  return ((exponent + 15) << 10) | Math.round((value / 2 ** exponent - 1) * 1024);
}

function uint32(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

function uint64(value: number): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
}

function float32(value: number): Uint8Array {
  return new Uint8Array(Float32Array.of(value).buffer);
}

function text(value: string): Uint8Array {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint64(bytes.length), bytes]);
}
