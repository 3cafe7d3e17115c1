import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import type {
  AdamOptions,
  AdapterOptions,
  Datum,
  NamedTensors,
  ParameterExport,
  PassOptions,
  PassResult,
  SampleRequest,
  SampleResult,
  StateOptions,
  StepMetrics,
} from "@tinker-ts/engine";
import type { EngineKit } from "../../src/engine-port/engine-kit.js";
import type { EnginePort, LoadedModel, TrainedAdapter } from "../../src/engine-port/engine-port.js";

/** What the toy stops at, by name, so that a test decides when it goes on. */
export class Gates {
  readonly #closed = new Map<
    string,
    { arrived: () => void; open: Promise<void>; go: () => void }
  >();

  /** Closes a gate; resolves once something has arrived at it. */
  close(name: string): Promise<void> {
    let go!: () => void;
    const open = new Promise<void>((resolve) => {
      go = resolve;
    });
    return new Promise<void>((arrived) => {
      this.#closed.set(name, { arrived, open, go });
    });
  }

  open(name: string): void {
    this.#closed.get(name)?.go();
    this.#closed.delete(name);
  }

  openAll(): void {
    for (const name of this.#closed.keys()) this.open(name);
  }

  async pass(name: string, signal?: AbortSignal): Promise<void> {
    const gate = this.#closed.get(name);
    if (!gate) return;
    gate.arrived();
    await new Promise<void>((resolve, reject) => {
      gate.open.then(resolve, reject);
      signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
  }
}

/** Something that goes wrong in the engine. */
export class ToyEngineError extends Error {
  override readonly name = "EngineError";
  readonly code: string;
  readonly category: string;

  constructor(code: string, message: string, category: string) {
    super(message);
    this.code = code;
    this.category = category;
  }
}

const facts = { architecture: "llama" as const, contextLength: 64, vocabSize: 100 };
const size = 4;

/** A model of four numbers that "trains" and "samples" exactly and at once. */
export class ToyEngine implements EnginePort {
  readonly gates: Gates;
  /** Adapters that exist, to find leaks. */
  adapters = 0;
  /** Most adapters that have existed at the same time. */
  mostAdapters = 0;
  /** Adapters that were ever made. */
  created = 0;
  /** Weights frozen for sampling that exist. */
  frozen = 0;
  /** Breaks the reading of model files. */
  isUnreadable = false;
  /** Prompt tokens that samples find in the cache. */
  cachedTokens = 0;
  /** Everything that was run, in order. */
  readonly log: string[] = [];

  constructor(gates = new Gates()) {
    this.gates = gates;
  }

  async loadModel(): Promise<LoadedModel> {
    await this.gates.pass("load");
    return {
      ...facts,
      precision: { weights: "f32" },
      createAdapter: async (options) => new ToyAdapter(this, options),
      sample: (options) => this.#sample(options),
    };
  }

  async close(): Promise<void> {}

  async #sample(options: SampleRequest): Promise<SampleResult> {
    this.log.push(`sample ${options.seed}`);
    await this.gates.pass("sample", options.signal);
    options.signal?.throwIfAborted();
    const weights = (options.adapter as ToyFrozen | undefined)?.weights ?? new Float32Array(size);
    const shift = Math.round(Math.abs(weights[0]!) * 1001);
    const { seed = 0, numSamples = 1 } = options;
    const samples = Array.from({ length: numSamples }, (_, index) => {
      const tokens = Int32Array.from({ length: options.maxTokens }, (_item, step) => {
        const token = (seed + index * 7 + step * 3 + shift) % facts.vocabSize;
        options.onToken?.({ sampleIndex: index, token, logprob: -step });
        return token;
      });
      const logprobs = Float32Array.from(tokens, (_item, step) => -step);
      return { tokens, logprobs, stopReason: "length" as const };
    });
    return {
      samples,
      promptCacheHitTokens: this.cachedTokens,
      ...(options.promptLogprobs
        ? {
            promptLogprobs: Float32Array.from(options.prompt, (_, index) =>
              index === 0 ? NaN : -1,
            ),
          }
        : {}),
    };
  }
}

class ToyFrozen {
  readonly id = 0;
  readonly weights: Float32Array;
  readonly #engine: ToyEngine;

  constructor(engine: ToyEngine, weights: Float32Array) {
    this.#engine = engine;
    this.weights = weights;
    engine.frozen++;
  }

  async release(): Promise<void> {
    this.#engine.frozen--;
  }
}

class ToyAdapter implements TrainedAdapter {
  readonly #engine: ToyEngine;
  #weights: Float32Array;
  #gradient = new Float32Array(size);
  #moment = new Float32Array(size);
  #step = 0;

  constructor(engine: ToyEngine, options: AdapterOptions) {
    this.#engine = engine;
    this.#weights = Float32Array.from({ length: size }, (_, i) => ((options.seed ?? 0) % 97) + i);
    engine.adapters++;
    engine.created++;
    engine.mostAdapters = Math.max(engine.mostAdapters, engine.adapters);
  }

  async forward(data: readonly Datum[]): Promise<PassResult> {
    return this.#pass(data, false, "forward");
  }

  async forwardBackward(data: readonly Datum[], loss: PassOptions): Promise<PassResult> {
    await this.#engine.gates.pass("forwardBackward", loss.signal);
    return this.#pass(data, true, "forwardBackward");
  }

  async optimStep({ learningRate }: AdamOptions): Promise<StepMetrics> {
    this.#engine.log.push("optimStep");
    await this.#engine.gates.pass("optimStep");
    this.#step++;
    for (let i = 0; i < size; i++) {
      this.#moment[i] = this.#moment[i]! * 0.9 + this.#gradient[i]!;
      this.#weights[i] = this.#weights[i]! - learningRate * this.#moment[i]!;
    }
    this.#gradient.fill(0);
    return { gradientNorm: 1, updateNorm: 1, learningRate, step: this.#step };
  }

  async snapshot(): Promise<ToyFrozen> {
    return new ToyFrozen(this.#engine, this.#weights.slice());
  }

  async exportState({ optimizer = false }: StateOptions = {}): Promise<ParameterExport> {
    return {
      tensors: toTensors("weights", this.#weights),
      ...(optimizer
        ? {
            optimizer: {
              step: this.#step,
              firstMoments: toTensors("weights", this.#moment),
              secondMoments: toTensors("weights", this.#moment),
            },
          }
        : {}),
    };
  }

  async importState(
    state: ParameterExport,
    { optimizer = false }: StateOptions = {},
  ): Promise<void> {
    this.#weights = state.tensors.get("weights")!.data.slice();
    this.#moment =
      (optimizer && state.optimizer?.firstMoments.get("weights")?.data.slice()) ||
      new Float32Array(size);
    this.#step = (optimizer && state.optimizer?.step) || 0;
    this.#gradient.fill(0);
  }

  async release(): Promise<void> {
    this.#engine.adapters--;
  }

  #pass(data: readonly Datum[], keepsGradient: boolean, name: string): PassResult {
    this.#engine.log.push(`${name} ${data.map(({ tokens }) => tokens.join(",")).join(" ")}`);
    for (const [index, { tokens }] of data.entries()) {
      if (tokens.some((token) => token >= facts.vocabSize)) {
        const text = `data[${index}]: token out of range`;
        throw new ToyEngineError("token_out_of_range", text, "user");
      }
      if (tokens[0] === 99) throw new ToyEngineError("engine_failed", "it broke", "internal");
    }
    const outputs = data.map(({ tokens }) => ({
      logprobs: Float32Array.from(tokens, (token) => -token * this.#weights[0]!),
      shape: [tokens.length],
    }));
    for (const { tokens } of keepsGradient ? data : []) {
      for (const [i, token] of tokens.entries()) {
        this.#gradient[i % size] = this.#gradient[i % size]! + token / 10;
      }
    }
    const sum = outputs.flatMap(({ logprobs }) => [...logprobs]).reduce((a, b) => a - b, 0);
    const targets = data.reduce((count, { tokens }) => count + tokens.length, 0);
    const metrics = { "loss:sum": sum, "targets:sum": targets, "weights:sum": targets };
    return { outputs, metrics };
  }
}

/** The toy as the server gets it; states are JSON files. */
export function toyKit(engine: ToyEngine): EngineKit {
  return {
    createEngine: async () => engine,
    findModel: async (location) => ({ folder: location, isFromHub: false }),
    async readFacts() {
      if (engine.isUnreadable) throw new Error("secret/path.ts: unreadable");
      return facts;
    },
    async writeAdapter(folder, { lora, baseModel, state }, onWritten) {
      const temporary = path.join(path.dirname(folder), `.${path.basename(folder)}.tmp`);
      await mkdir(temporary, { recursive: true });
      const text = JSON.stringify({
        lora,
        baseModel,
        tensors: plain(state.tensors),
        optimizer: state.optimizer && {
          step: state.optimizer.step,
          moments: plain(state.optimizer.firstMoments),
        },
      });
      await writeFile(path.join(temporary, "adapter.json"), text);
      await onWritten(temporary);
      await rename(temporary, folder);
    },
    readForeignAdapter: async () => {
      throw new Error("toys are not brought from elsewhere");
    },
    async readAdapter(folder): Promise<ParameterExport> {
      const text = await readFile(path.join(folder, "adapter.json"), "utf8");
      const { tensors, optimizer } = JSON.parse(text) as {
        tensors: Record<string, number[]>;
        optimizer?: { step: number; moments: Record<string, number[]> };
      };
      if (!optimizer) return { tensors: revive(tensors) };
      const moments = revive(optimizer.moments);
      const { step } = optimizer;
      return {
        tensors: revive(tensors),
        optimizer: { step, firstMoments: moments, secondMoments: moments },
      };
    },
  };
}

function toTensors(name: string, data: Float32Array): NamedTensors {
  return new Map([[name, { shape: [data.length], data: data.slice() }]]);
}

function plain(tensors: NamedTensors): Record<string, number[]> {
  return Object.fromEntries([...tensors].map(([name, { data }]) => [name, [...data]]));
}

function revive(tensors: Record<string, number[]>): NamedTensors {
  return new Map(
    Object.entries(tensors).map(([name, list]) => [
      name,
      { shape: [list.length], data: Float32Array.from(list) },
    ]),
  );
}
