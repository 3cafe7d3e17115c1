import {
  embeddingName,
  finalNormName,
  inLayer,
  layerKind,
  layerTensors,
  mixerOf,
  unembeddingName,
  type LayerTensorKey,
  type NamedTensors,
} from "@tinker-ts/hub/weights";
import type { ModelConfig } from "@tinker-ts/engine";

// Models computed token by token in double precision, as the papers write them: nothing here is shared with the
// engine but the names of tensors.

type Vector = number[];
type Weights = (key: LayerTensorKey) => Float64Array;

/** Tensors in double precision. */
export type PlainTensors = ReadonlyMap<string, Float64Array>;

/** Tensors as the engine takes them, in double precision. */
export function plainTensors(tensors: NamedTensors): Map<string, Float64Array> {
  return new Map([...tensors].map(([name, { data }]) => [name, Float64Array.from(data)]));
}

/** Log-probabilities of each token's successor. */
export function plainLogprobs(
  config: ModelConfig,
  tensors: PlainTensors,
  tokens: readonly number[],
  targets: readonly number[],
  adapter: { readonly tensors: PlainTensors; readonly rank: number; readonly scale: number },
): Vector {
  const { hiddenSize, embeddingScale = 1, residualScale = 1, logitScale = 1 } = config;
  const table = of(tensors, embeddingName);
  let rows = tokens.map((token) =>
    Array.from(
      table.subarray(token * hiddenSize, (token + 1) * hiddenSize),
      (value) => value * embeddingScale,
    ),
  );
  for (let layer = 0; layer < config.layers; layer++) {
    const kind = layerKind(config, layer);
    const known = new Map(layerTensors(config, kind).map((tensor) => [tensor.key, tensor]));
    const made = new Map<LayerTensorKey, Float64Array>();
    const weights: Weights = (key) => {
      const before = made.get(key);
      if (before !== undefined) return before;
      const weight = make(key);
      made.set(key, weight);
      return weight;
    };
    const make: Weights = (key) => {
      const tensor = known.get(key);
      if (tensor === undefined) throw new Error(`the layer has no ${key}`);
      const whole = of(tensors, inLayer(layer, tensor.name));
      const [count = 0, width = 1] = tensor.shape;
      const first = (tensor.firstRow ?? 0) * width;
      const own = tensor.shape.length === 2 ? whole.slice(first, first + count * width) : whole;
      if (tensor.shape.length !== 2) return own;
      return merged(own, inLayer(layer, tensor.module), count, width, adapter);
    };
    const has = (key: LayerTensorKey): boolean => known.has(key);
    const normed = rows.map((row) => norm(config, row, weights("inputNorm")));
    const mixed = mixers[mixerOf(kind)](config, weights, has, normed, kind.window);
    rows = rows.map((row, t) => plus(row, mixed[t] ?? [], residualScale));
    rows = rows.map((row) =>
      plus(
        row,
        feedForward(config, weights, has, norm(config, row, weights("middleNorm"))),
        residualScale,
      ),
    );
  }
  const head = merged(
    of(tensors, config.tiedEmbeddings ? embeddingName : unembeddingName),
    "lm_head",
    config.vocabSize,
    hiddenSize,
    adapter,
  );
  return rows.map((row, t) => {
    const last = norm(config, row, of(tensors, finalNormName(config)));
    const logits = product(head, last).map((value) => value * logitScale);
    const largest = Math.max(...logits);
    const sum = logits.reduce((total, value) => total + Math.exp(value - largest), 0);
    return (logits[targets[t] ?? 0] ?? NaN) - largest - Math.log(sum);
  });
}

type MixRows = (
  config: ModelConfig,
  weights: Weights,
  has: (key: LayerTensorKey) => boolean,
  rows: readonly Vector[],
  window: number | null,
) => Vector[];

const mixers: Readonly<Record<"attention" | "deltaRule" | "convolution" | "mamba", MixRows>> = {
  attention,
  deltaRule,
  convolution,
  mamba,
};

/** Attention without rotation; queries may have gates. */
function attention(
  config: ModelConfig,
  weights: Weights,
  has: (key: LayerTensorKey) => boolean,
  rows: readonly Vector[],
  window: number | null,
): Vector[] {
  const { heads, kvHeads, headDim, gatedAttention = false } = config;
  const step = gatedAttention ? 2 : 1;
  const heads3 = rows.map((row) => {
    const [q, k, v] = [
      product(weights("q"), row),
      product(weights("k"), row),
      product(weights("v"), row),
    ];
    const part = (value: Vector, head: number, width = headDim): Vector =>
      value.slice(head * width, (head + 1) * width);
    const normed = (value: Vector, key: "qNorm" | "kNorm"): Vector =>
      has(key) ? norm(config, value, weights(key)) : value;
    return {
      q: indices(heads).map((head) => normed(part(q, head * step), "qNorm")),
      gates: indices(heads).map((head) => part(q, head * step + 1)),
      k: indices(kvHeads).map((head) => normed(part(k, head), "kNorm")),
      v: indices(kvHeads).map((head) => part(v, head)),
    };
  });
  const scale = config.attentionScale ?? headDim ** -0.5;
  return heads3.map(({ q, gates }, t) => {
    const first = window === null ? 0 : Math.max(0, t - window + 1);
    const collected = q.flatMap((query, head) => {
      const kv = Math.floor(head / (heads / kvHeads));
      const seen = heads3.slice(first, t + 1);
      const scores = seen.map(({ k }) => scale * dot(query, k[kv] ?? []));
      const largest = Math.max(...scores);
      const powers = scores.map((score) => Math.exp(score - largest));
      const sum = powers.reduce((a, b) => a + b, 0);
      const result: Vector = Array<number>(headDim).fill(0);
      for (const [index, { v }] of seen.entries()) {
        addTo(result, v[kv] ?? [], (powers[index] ?? 0) / sum);
      }
      if (!gatedAttention) return result;
      return result.map((value, i) => value * sigmoid(gates[head]?.[i] ?? 0));
    });
    return product(weights("o"), collected);
  });
}

function deltaRule(
  config: ModelConfig,
  weights: Weights,
  _has: unknown,
  rows: readonly Vector[],
): Vector[] {
  const sizes = config.deltaRule;
  if (sizes === undefined) throw new Error("there are no sizes");
  const { keyHeads, valueHeads, keyDim, valueDim, kernel } = sizes;
  const [keys, group] = [keyHeads * keyDim, valueHeads / keyHeads];
  const inputs = rows.map((row) => [
    ...product(weights("deltaQ"), row),
    ...product(weights("deltaK"), row),
    ...product(weights("deltaV"), row),
  ]);
  const mixed = convolve(inputs, weights("deltaConv"), kernel).map((row) => row.map(silu));
  const states = indices(valueHeads).map(() => new Float64Array(keyDim * valueDim));
  return rows.map((row, t) => {
    const own = mixed[t] ?? [];
    const z = product(weights("deltaZ"), row);
    const [b, a] = [product(weights("deltaB"), row), product(weights("deltaA"), row)];
    const gated = indices(valueHeads).flatMap((head) => {
      const keyHead = Math.floor(head / group);
      const unit = (start: number): Vector => {
        const part = own.slice(start + keyHead * keyDim, start + (keyHead + 1) * keyDim);
        const length = Math.sqrt(dot(part, part) + 1e-6);
        return part.map((value) => value / length);
      };
      const [q, k] = [unit(0).map((value) => value * keyDim ** -0.5), unit(keys)];
      const start = 2 * keys + head * valueDim;
      const v = own.slice(start, start + valueDim);
      const step = softplus((a[head] ?? 0) + (weights("deltaStep")[head] ?? 0));
      const decay = Math.exp(-Math.exp(weights("deltaDecay")[head] ?? 0) * step);
      const state = states[head] ?? new Float64Array();
      for (let i = 0; i < state.length; i++) state[i]! *= decay;
      const strength = sigmoid(b[head] ?? 0);
      const change = v.map((value, j) => strength * (value - fromState(state, k, j, valueDim)));
      for (const [i, x] of k.entries()) {
        for (const [j, y] of change.entries()) state[i * valueDim + j]! += x * y;
      }
      const read = indices(valueDim).map((j) => fromState(state, q, j, valueDim));
      const normed = rms(read, weights("deltaNorm"), config.normEpsilon);
      return normed.map((value, i) => value * silu(z[head * valueDim + i] ?? 0));
    });
    return product(weights("deltaOut"), gated);
  });
}

/** One column of a state, read with a key. */
function fromState(state: Float64Array, key: Vector, column: number, width: number): number {
  let sum = 0;
  for (let i = 0; i < key.length; i++) sum += key[i]! * state[i * width + column]!;
  return sum;
}

function convolution(
  config: ModelConfig,
  weights: Weights,
  has: (key: LayerTensorKey) => boolean,
  rows: readonly Vector[],
): Vector[] {
  const { hiddenSize, convolution: sizes } = config;
  const biased = (value: Vector, key: LayerTensorKey): Vector =>
    has(key) ? plus(value, [...weights(key)]) : value;
  const inputs = rows.map((row) => biased(product(weights("convIn"), row), "convInBias"));
  const part = (row: Vector, index: number): Vector =>
    row.slice(index * hiddenSize, (index + 1) * hiddenSize);
  const opened = inputs.map((row) => part(row, 0).map((b, i) => b * (part(row, 2)[i] ?? 0)));
  return convolve(opened, weights("conv"), sizes?.kernel ?? 0).map((row, t) => {
    const mixed = biased(row, "convBias");
    const after = part(inputs[t] ?? [], 1);
    return biased(
      product(
        weights("convOut"),
        mixed.map((value, i) => value * (after[i] ?? 0)),
      ),
      "convOutBias",
    );
  });
}

function mamba(
  config: ModelConfig,
  weights: Weights,
  has: (key: LayerTensorKey) => boolean,
  rows: readonly Vector[],
): Vector[] {
  const sizes = config.mamba;
  if (sizes === undefined) throw new Error("there are no sizes");
  const { heads, headDim, groups, stateSize, kernel, timeStep } = sizes;
  const [width, inner] = [heads * headDim, groups * stateSize];
  const biased = (value: Vector, key: LayerTensorKey): Vector =>
    has(key) ? plus(value, [...weights(key)]) : value;
  const inputs = rows.map((row) => biased(product(weights("mambaIn"), row), "mambaInBias"));
  const channels = inputs.map((row) => row.slice(width, 2 * width + 2 * inner));
  const mixed = convolve(channels, weights("mambaConv"), kernel).map((row) =>
    biased(row, "mambaConvBias").map(silu),
  );
  const states = indices(heads).map(() => new Float64Array(headDim * stateSize));
  return inputs.map((input, t) => {
    const own = mixed[t] ?? [];
    const read = indices(heads).flatMap((head) => {
      const group = Math.floor(head / (heads / groups));
      const x = own.slice(head * headDim, (head + 1) * headDim);
      const part = (start: number): Vector =>
        own.slice(start + group * stateSize, start + (group + 1) * stateSize);
      const [into, from] = [part(width), part(width + inner)];
      const raw = (input[2 * width + 2 * inner + head] ?? 0) + (weights("mambaStep")[head] ?? 0);
      const step = Math.min(Math.max(softplus(raw), timeStep[0]), timeStep[1]);
      const decay = Math.exp(-Math.exp(weights("mambaDecay")[head] ?? 0) * step);
      const state = states[head] ?? new Float64Array();
      return x.map((value, p) => {
        let sum = (weights("mambaSkip")[head] ?? 0) * value;
        for (const [n, b] of into.entries()) {
          const i = p * stateSize + n;
          state[i] = decay * state[i]! + step * value * b;
          sum += (from[n] ?? 0) * state[i];
        }
        return sum;
      });
    });
    const gated = read.map((value, i) => value * silu(input[i] ?? 0));
    const normed = rms(gated, weights("mambaNorm"), config.normEpsilon);
    return biased(product(weights("mambaOut"), normed), "mambaOutBias");
  });
}

function feedForward(
  config: ModelConfig,
  weights: Weights,
  has: (key: LayerTensorKey) => boolean,
  row: Vector,
): Vector {
  const { intermediateSize: width } = config;
  const both = has("gateUp")
    ? product(weights("gateUp"), row)
    : [...product(weights("gate"), row), ...product(weights("up"), row)];
  const inner = indices(width).map((i) => silu(both[i] ?? 0) * (both[width + i] ?? 0));
  return product(weights("down"), inner);
}

function convolve(rows: readonly Vector[], kernel: Float64Array, size: number): Vector[] {
  return rows.map((row, t) =>
    row.map((_, channel) => {
      let sum = 0;
      for (let j = 0; j < size; j++) {
        sum += kernel[channel * size + j]! * (rows[t - size + 1 + j]?.[channel] ?? 0);
      }
      return sum;
    }),
  );
}

function norm(config: ModelConfig, row: Vector, weight: Float64Array): Vector {
  const one = config.normsPlusOne === true ? 1 : 0;
  return rms(
    row,
    weight.map((value) => value + one),
    config.normEpsilon,
  );
}

function rms(row: Vector, weight: Float64Array, epsilon: number): Vector {
  const inverse = 1 / Math.sqrt(dot(row, row) / row.length + epsilon);
  return row.map((value, i) => value * inverse * (weight[i] ?? NaN));
}

/** A weight with its adapter. */
function merged(
  weight: Float64Array,
  module: string,
  rows: number,
  columns: number,
  { tensors, rank, scale }: { tensors: PlainTensors; rank: number; scale: number },
): Float64Array {
  const a = tensors.get(`base_model.model.${module}.lora_A.weight`);
  const b = tensors.get(`base_model.model.${module}.lora_B.weight`);
  if (a === undefined || b === undefined) return weight;
  const sum = weight.slice();
  for (let row = 0; row < rows; row++) {
    for (let k = 0; k < rank; k++) {
      const factor = scale * b[row * rank + k]!;
      for (let i = 0; i < columns; i++) sum[row * columns + i]! += factor * a[k * columns + i]!;
    }
  }
  return sum;
}

function product(matrix: Float64Array, vector: Vector): Vector {
  const width = vector.length;
  return indices(matrix.length / width).map((row) => {
    let sum = 0;
    for (let i = 0; i < width; i++) sum += matrix[row * width + i]! * vector[i]!;
    return sum;
  });
}

function dot(left: Vector, right: Vector): number {
  let sum = 0;
  for (let i = 0; i < left.length; i++) sum += left[i]! * right[i]!;
  return sum;
}

function plus(left: Vector, right: Vector, factor = 1): Vector {
  return left.map((value, i) => value + factor * (right[i] ?? NaN));
}

function addTo(sum: Vector, value: Vector, factor: number): void {
  for (const [i, x] of value.entries()) sum[i]! += factor * x;
}

function sigmoid(value: number): number {
  return 1 / (1 + Math.exp(-value));
}

function silu(value: number): number {
  return value * sigmoid(value);
}

function softplus(value: number): number {
  return Math.max(value, 0) + Math.log1p(Math.exp(-Math.abs(value)));
}

function indices(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

function of(tensors: PlainTensors, name: string): Float64Array {
  const tensor = tensors.get(name);
  if (tensor === undefined) throw new Error(`there is no ${name}`);
  return tensor;
}
