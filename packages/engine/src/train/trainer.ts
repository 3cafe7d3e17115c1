import { EngineError } from "../errors.js";
import type { ValueMemory, Values } from "../execution/device-array.js";
import { DeviceScope } from "../gpu/device-scope.js";
import type { PortValues } from "../execution/program.js";
import { embedTokens } from "../model/tokens.js";
import type { ModelRuntime } from "../model/model-runtime.js";
import { at } from "../util/arrays.js";
import { GradientSum } from "./gradient-sum.js";
import { adaptedSites, type Trained } from "./graphs/trained.js";
import { HeadRunner, RowTable } from "./head-pass.js";
import {
  type Keep,
  type LayerPass,
  LayerRunner,
  SegmentPasses,
  type StretchPasses,
} from "./layer-runner.js";
import { LongSequencePasses } from "./long-sequence-passes.js";
import {
  type LongArrangement,
  type MicroBatch,
  packMicroBatch,
  planMicroBatches,
  type ShortArrangement,
} from "./micro-batch.js";
import { lossMetrics } from "./metrics.js";
import type { MergedWeights } from "./merged-weights.js";
import { viewsAt, type Place } from "../model/parameter-layout.js";
import type { PassParameters, PassRequest, PassResult } from "./pass.js";
import { TrainingPrograms } from "./training-programs.js";
import type { TrainingBudget } from "./training-budget.js";

/** Runs a micro-batch, with intermediate values in the device's memory. */
type RunBatch<A> = (
  arrangement: A,
  batch: MicroBatch,
  table: RowTable,
  sum: GradientSum | undefined,
  report: (fraction: number) => void,
) => Promise<void>;

/** One pipeline for each kind of micro-batch, with one set of weights. */
interface PassRunners {
  readonly short: RunBatch<ShortArrangement>;
  readonly long: RunBatch<LongArrangement>;
}

/** The programs and feeds that take one kind of micro-batch through the model. */
interface PassPipeline<A, V extends Values> {
  readonly layers: LayerRunner<A, V>;
  readonly head: HeadRunner<V>;
  readonly memory: ValueMemory<V>;
  /** Parameters of a place. */
  readonly feeds: (place: Place) => PortValues;
}

/** Computes losses and gradients of one kind of trained parameters. */
export class Trainer {
  readonly #model: ModelRuntime;
  readonly #trained: Trained;
  readonly #budget: TrainingBudget;
  readonly #merged: MergedWeights;

  /** `merged` is shared by all trainers of the model. */
  constructor(
    model: ModelRuntime,
    trained: Trained,
    budget: TrainingBudget,
    merged: MergedWeights,
  ) {
    this.#model = model;
    this.#trained = trained;
    this.#budget = budget;
    this.#merged = merged;
  }

  async run(request: PassRequest): Promise<PassResult> {
    const { resident, pool } = this.#model;
    if (resident === undefined) return this.#run(request, pool);
    const scope = new DeviceScope(resident.memory, pool);
    try {
      return await this.#run(request, scope);
    } finally {
      scope.end();
    }
  }

  async #run<V extends Values>(request: PassRequest, memory: ValueMemory<V>): Promise<PassResult> {
    const { data, parameters, pause, onProgress } = request;
    const { heads, kvHeads } = this.#model.config;
    const sum =
      request.gradient && new GradientSum(parameters.layout, request.gradient, this.#model.pool);
    const totalTokens = data.reduce((total, datum) => total + datum.tokens.length, 0);
    const runners = await this.#runners(request, totalTokens, memory);
    const found: { logprobs: Float32Array; terms: Float32Array }[] = [];
    let doneTokens = 0;
    for (const members of planMicroBatches(data, this.#budget)) {
      await pause();
      const batch = packMicroBatch(data, members, heads, kvHeads, this.#budget);
      const table = new RowTable(members.map((index) => at(data, index)));
      const report = (fraction: number): void => {
        const done = doneTokens + Math.floor(fraction * batch.tokens.length);
        onProgress?.({ doneTokens: done, totalTokens });
      };
      const { arrangement } = batch;
      if (arrangement.kind === "short") {
        await runners.short(arrangement, batch, table, sum, report);
      } else {
        await runners.long(arrangement, batch, table, sum, report);
      }
      let member = 0;
      for (const result of table.byDatum()) {
        const index = at(members, member++);
        refuseNonFinite(result.terms, index);
        found[index] = result;
      }
      doneTokens += batch.tokens.length;
      onProgress?.({ doneTokens, totalTokens });
    }
    sum?.complete();
    this.#model.pool.trim(this.#budget.activationBytes);
    const outputs = data.map((datum, index) => ({
      logprobs: at(found, index).logprobs,
      shape: datum.targetShape,
    }));
    return { outputs, metrics: lossMetrics(request.loss, data, found) };
  }

  /**
   * Long calls merge an adapter into a copy of the weights first: that costs as much as a few tokens per
   * width, and spares every token the adapter's own products. The decision depends on the call
   * alone, so that results repeat.
   */
  async #runners<V extends Values>(
    request: PassRequest,
    totalTokens: number,
    memory: ValueMemory<V>,
  ): Promise<PassRunners> {
    const { config, pool, programs, resident } = this.#model;
    const { parameters } = request;
    const { mergeFromTokens } = this.#budget;
    const trained = this.#trained;
    const merge = trained.kind === "adapter" && totalTokens >= mergeFromTokens;
    const weights = merge
      ? await this.#merged.fill(parameters, trained.sites, request.pause)
      : ((await resident?.weights()) ?? (await this.#model.trainingWeights()));
    const parameterForm = merge ? { ...trained, merged: true } : trained;
    const made = new TrainingPrograms(config, programs, parameterForm);
    const feeds =
      (await resident?.parameters(parameters)) ??
      ((place: Place) => viewsAt(parameters.layout, parameters.values, place));
    const pipeline = <A, P extends Values>(
      passes: StretchPasses<A, P>,
      values: ValueMemory<P>,
    ): PassPipeline<A, P> => ({
      layers: new LayerRunner(passes, values),
      head: new HeadRunner(config, weights, made, values),
      memory: values,
      feeds,
    });
    const short = pipeline(
      new SegmentPasses(config, weights, parameterForm, made, memory, this.#budget),
      memory,
    );
    let long: PassPipeline<LongArrangement, Float32Array> | undefined;
    return {
      short: (...batch) => this.#runThrough(request, short, ...batch),
      long: (...batch) => {
        // Blocks of a long sequence are views, which only arrays of the processor's memory have.
        long ??= pipeline(
          new LongSequencePasses(config, weights, parameterForm, made, pool, this.#budget),
          pool,
        );
        return this.#runThrough(request, long, ...batch);
      },
    };
  }

  async #runThrough<A extends ShortArrangement | LongArrangement, V extends Values>(
    request: PassRequest,
    { layers, head, memory, feeds }: PassPipeline<A, V>,
    arrangement: A,
    batch: MicroBatch,
    table: RowTable,
    sum: GradientSum | undefined,
    report: (fraction: number) => void,
  ): Promise<void> {
    const { pool } = this.#model;
    const { parameters, pause } = request;
    const backward = sum !== undefined && table.activeRows().length > 0;
    const throughLayers = backward && this.#trainsLayers();
    const keep = throughLayers ? this.#keep(batch) : "nothing";
    const pass = await this.#layerPass(request, memory, feeds, batch, arrangement, sum, report);
    const embedded = await memory.bring(this.#embed(batch.tokens, parameters));
    const { hidden, kept } = await layers.forward(pass, embedded, keep);
    const headPass = {
      loss: request.loss,
      rank: parameters.rank,
      feeds: { ...this.#sharedFeeds(parameters), ...outerFeeds(feeds("outer")) },
      pause,
    };
    if (backward) {
      const gradient = await head.backward(headPass, hidden, table, sum, throughLayers);
      const ofInput = gradient && (await layers.backward(pass, kept, gradient));
      if (ofInput !== undefined) {
        const rows = await memory.fetch(ofInput);
        sum.addEmbeddingRows(batch.tokens, rows, this.#model.config.embeddingScale);
        pool.giveBack(rows);
      }
    } else {
      await head.forward(headPass, hidden, table);
    }
    memory.giveBack(hidden);
  }

  async #layerPass<A extends ShortArrangement | LongArrangement, V extends Values>(
    request: PassRequest,
    memory: ValueMemory<V>,
    feeds: PassPipeline<A, V>["feeds"],
    batch: MicroBatch,
    arrangement: A,
    sum: GradientSum | undefined,
    report: (fraction: number) => void,
  ): Promise<LayerPass<A>> {
    const { parameters, pause } = request;
    // The head counts as one more layer.
    const toPass = (this.#model.config.layers + 1) * (sum === undefined ? 1 : 2);
    let passed = 0;
    const rotary = this.#model.rotary(Math.max(...batch.lengths));
    const own = { positions: rotary.rowsOf(batch.lengths) };
    const { positions } = await memory.place(own);
    return {
      tokenCount: batch.tokens.length,
      positions: positions ?? own.positions,
      tables: (await this.#model.resident?.rotary(rotary)) ?? rotary.feeds,
      tableRows: rotary.rows,
      arrangement:
        arrangement.kind === "short"
          ? { ...arrangement, feeds: await memory.place(arrangement.feeds) }
          : arrangement,
      parameters: {
        rank: parameters.rank,
        shared: this.#sharedFeeds(parameters),
        feeds,
        collect: async (targets, work) => {
          if (sum === undefined) throw new Error("a forward pass has no gradients");
          await sum.collect(targets, work);
        },
      },
      pause,
      advance: (layers) => {
        passed += layers;
        report(passed / toPass);
      },
    };
  }

  #sharedFeeds(parameters: PassParameters): Record<string, Float32Array> {
    const { kind } = this.#trained;
    return kind === "adapter" ? { "lora.scale": Float32Array.of(parameters.scale) } : {};
  }

  #embed(tokens: Int32Array, parameters: PassParameters): Float32Array {
    const { config, pool, embedding } = this.#model;
    const own = viewsAt(parameters.layout, parameters.values, "outer").embedding;
    const rows = pool.take(tokens.length * config.hiddenSize);
    embedTokens(config, own ?? embedding, tokens, rows);
    return rows;
  }

  #trainsLayers(): boolean {
    return (
      this.#trained.kind === "full" || adaptedSites(this.#trained).some((site) => site !== "head")
    );
  }

  #keep(batch: MicroBatch): Keep {
    const bytes = batch.tokens.length * this.#budget.keptBytesPerToken;
    return bytes <= this.#budget.activationBytes ? "everything" : "inputs";
  }
}

/** Parameters outside the layers; a tied unembedding is fed the embedding. */
function outerFeeds({ embedding, ...feeds }: PortValues): PortValues {
  return embedding === undefined ? feeds : { head: embedding, ...feeds };
}

function refuseNonFinite(terms: Float32Array, index: number): void {
  const bad = terms.findIndex((term) => !Number.isFinite(term));
  if (bad < 0) return;
  throw new EngineError(
    "not_finite",
    `data[${index}]: the loss at target ${bad} is ${terms[bad]}. Check that logprobs are those of ` +
      "these tokens and that weights or advantages are of a moderate size.",
  );
}
