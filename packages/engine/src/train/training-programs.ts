import { kindKey, mixerOf, type LayerKind } from "@tinker-ts/hub/weights";
import type { PortValues, Program, ProgramCache } from "../execution/program.js";
import type { ModelConfig } from "../model/model-config.js";
import { attentionBlockBackward, attentionBlockForward } from "./graphs/attention-block.js";
import { attentionInputsBackward, attentionInputsForward } from "./graphs/attention-inputs.js";
import { headBackward, headForward, headLoss } from "./graphs/head.js";
import { layerOutputsBackward, layerOutputsForward } from "./graphs/layer-outputs.js";
import { segmentBackward, segmentForward, type SegmentOptions } from "./graphs/segment.js";
import type { Trained } from "./graphs/trained.js";
import { losses, type LossName } from "./losses.js";
import type { DimBindings } from "../graph/dim.js";
import { DeviceArray, type ValueMemory, type Values } from "../execution/device-array.js";
import type { GradientTarget } from "./gradient-sum.js";
import type { Activations, LayerParameters } from "./layer-runner.js";

/** Options that distinguish segments of one kind of training. */
export type SegmentShape = Omit<SegmentOptions, "trained">;

/** The programs of one kind of training; all layers, ranks and batch sizes share them. */
export class TrainingPrograms {
  readonly #config: ModelConfig;
  readonly #cache: ProgramCache;
  readonly #trained: Trained;
  readonly #key: string;

  constructor(config: ModelConfig, cache: ProgramCache, trained: Trained) {
    this.#config = config;
    this.#cache = cache;
    this.#trained = trained;
    const merged = trained.kind === "adapter" && trained.merged ? "merged" : "";
    this.#key = trained.kind === "full" ? "full" : `${trained.sites.toSorted().join()} ${merged}`;
  }

  segmentForward(options: SegmentShape): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get(`segment ${keyOf(options)}`, () =>
      segmentForward(config, { ...options, trained }),
    );
  }

  segmentBackward(options: SegmentShape): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get(`segmentBackward ${keyOf(options)}`, () =>
      segmentBackward(config, { ...options, trained }),
    );
  }

  attentionInputsForward(kind: LayerKind): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get(`attentionInputs ${kindKey(kind)}`, () =>
      attentionInputsForward(config, kind, trained),
    );
  }

  attentionInputsBackward(kind: LayerKind, inputGradient: boolean): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get(`attentionInputsBackward ${kindKey(kind)} ${inputGradient}`, () =>
      attentionInputsBackward(config, kind, trained, inputGradient),
    );
  }

  attentionBlockForward(kind: LayerKind): Promise<Program> {
    return this.#cache.get(`attentionBlock ${kindKey(kind)}`, () =>
      attentionBlockForward(this.#config, kind),
    );
  }

  attentionBlockBackward(kind: LayerKind): Promise<Program> {
    return this.#cache.get(`attentionBlockBackward ${kindKey(kind)}`, () =>
      attentionBlockBackward(this.#config, kind),
    );
  }

  layerOutputsForward(kind: LayerKind): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get("layerOutputs", () => layerOutputsForward(config, kind, trained));
  }

  layerOutputsBackward(kind: LayerKind): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get("layerOutputsBackward", () => layerOutputsBackward(config, kind, trained));
  }

  headForward(): Promise<Program> {
    return this.#get("head", () => headForward(this.#config, this.#trained));
  }

  headLoss(loss: LossName): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get(`headLoss ${loss}`, () => headLoss(config, trained, losses[loss]));
  }

  headBackward(loss: LossName, inputGradient: boolean): Promise<Program> {
    const [config, trained] = [this.#config, this.#trained];
    return this.#get(`headBackward ${loss} ${inputGradient}`, () =>
      headBackward(config, trained, losses[loss], inputGradient),
    );
  }

  #get(name: string, compile: Parameters<ProgramCache["get"]>[1]): Promise<Program> {
    return this.#cache.get(`${name} ${this.#key}`, compile);
  }
}

function keyOf({ kinds, layout, chunks, handsOn, inputGradient, keep }: SegmentShape): string {
  const states = kinds.some(hasState) ? `${chunks} ${handsOn === true ? "handed on" : ""}` : "";
  return `${kinds.map(kindKey).join()} ${layout} ${states} ${inputGradient} ${keep}`;
}

function hasState(kind: LayerKind): boolean {
  return mixerOf(kind) !== "attention";
}

/** A call of a program. */
export interface ProgramCall {
  readonly program: Program;
  readonly feeds: PortValues;
  readonly sizes: DimBindings & { readonly tokens: number };
  /** Tokens that are computed at once, where they do not see each other. @default all */
  readonly chunkTokens?: number;
  /** Awaited before every run. */
  readonly pause: () => Promise<void>;
}

/** Makes a call with arrays from the pool for its results, or for the requested ones. */
export async function compute<V extends Values>(
  pool: ValueMemory<V>,
  call: ProgramCall,
  wanted?: readonly string[],
): Promise<Activations<V>> {
  const { program } = call;
  const results: Activations<V> = {};
  for (const [name, length] of program.resultLengths(call.sizes)) {
    if (wanted?.includes(name) ?? true) results[name] = await pool.take(length);
  }
  for (const { feeds, rowsOf, sizes } of runsOf(call)) {
    await call.pause();
    await program.run(feeds, rowsOf(results), sizes);
  }
  return results;
}

/** Makes a call of a backward program: gradients of parameters are added up, the others returned. */
export async function computeGradients<V extends Values>(
  pool: ValueMemory<V>,
  call: ProgramCall,
  parameters: LayerParameters,
  targetOf: (resultName: string) => GradientTarget | undefined,
): Promise<Activations<V>> {
  const { program } = call;
  const values: Activations<V> = {};
  const targets: GradientTarget[] = [];
  for (const [name, length] of program.resultLengths(call.sizes)) {
    const target = targetOf(name);
    if (target === undefined) values[name] = await pool.take(length);
    else targets.push(target);
  }
  for (const { feeds, rowsOf, sizes } of runsOf(call)) {
    await call.pause();
    await parameters.collect(targets, (gradients) =>
      program.run(feeds, { ...rowsOf(values), ...gradients }, sizes),
    );
  }
  return values;
}

/** One of the runs that a call consists of. */
interface ProgramRun {
  readonly feeds: PortValues;
  readonly sizes: DimBindings;
  /** The run's part of the results that have a row per token. */
  readonly rowsOf: (results: PortValues) => PortValues;
}

function* runsOf({ program, feeds, sizes, chunkTokens }: ProgramCall): Iterable<ProgramRun> {
  const { tokens } = sizes;
  if (chunkTokens === undefined || tokens <= chunkTokens) {
    yield { feeds, sizes, rowsOf: (results) => results };
    return;
  }
  const rowPorts = program.rowPorts("tokens");
  for (let start = 0; start < tokens; start += chunkTokens) {
    const end = Math.min(tokens, start + chunkTokens);
    const rowsOf = (values: PortValues): PortValues =>
      Object.fromEntries(
        Object.entries(values).map(([name, data]) => {
          if (data instanceof DeviceArray || !rowPorts.has(name)) return [name, data];
          const width = data.length / tokens;
          return [name, data.subarray(start * width, end * width)];
        }),
      );
    yield { feeds: rowsOf(feeds), sizes: { ...sizes, tokens: end - start }, rowsOf };
  }
}
