import { EngineError } from "../errors.js";
import { embedTokens } from "../model/embed-tokens.js";
import type { ModelRuntime } from "../model/model-runtime.js";
import { at } from "../util/at.js";
import { GradientSum } from "./gradient-sum.js";
import { adaptedSites, type Trained } from "./graphs/trained.js";
import { HeadRunner } from "./head-pass.js";
import type { Keep, LayerPass } from "./layer-pass.js";
import { LayerRunner } from "./layer-runner.js";
import { LongSequencePasses } from "./long-sequence-passes.js";
import type { LongArrangement, ShortArrangement } from "./arrangement.js";
import { SegmentPasses } from "./segment-passes.js";
import { lossMetrics } from "./metrics.js";
import type { MergedWeights } from "./merged-weights.js";
import { packMicroBatch, planMicroBatches, type MicroBatch } from "./micro-batch.js";
import { viewsAt } from "../model/parameter-layout.js";
import type { PassParameters, PassRequest, PassResult } from "./pass.js";
import { RowTable } from "./row-table.js";
import { TrainingPrograms } from "./training-programs.js";
import type { TrainingBudget } from "./training-budget.js";

/** What runs passes with one set of weights. */
interface PassRunners {
  readonly short: LayerRunner<ShortArrangement>;
  readonly long: LayerRunner<LongArrangement>;
  readonly head: HeadRunner;
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
    const { data, parameters, pause, onProgress } = request;
    const { heads, kvHeads } = this.#model.config;
    const sum =
      request.gradient && new GradientSum(parameters.layout, request.gradient, this.#model.pool);
    const totalTokens = data.reduce((total, datum) => total + datum.tokens.length, 0);
    const runners = await this.#runners(request, totalTokens);
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
      await this.#runMicroBatch(request, runners, batch, table, sum, report);
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
   * width, and spares every token the adapter's own products. Whether it is done depends on the call
   * alone, so that results repeat.
   */
  async #runners(request: PassRequest, totalTokens: number): Promise<PassRunners> {
    const { config, pool, programs } = this.#model;
    const { mergeFromTokens } = this.#budget;
    const trained = this.#trained;
    const merge = trained.kind === "adapter" && totalTokens >= mergeFromTokens;
    const weights = merge
      ? await this.#merged.fill(request.parameters, trained.sites, request.pause)
      : this.#model.trainingWeights;
    const way = merge ? { ...trained, merged: true } : trained;
    const made = new TrainingPrograms(config, programs, way);
    const short = new SegmentPasses(config, weights, way, made, pool, this.#budget);
    const long = new LongSequencePasses(config, weights, way, made, pool, this.#budget);
    return {
      short: new LayerRunner(short, pool),
      long: new LayerRunner(long, pool),
      head: new HeadRunner(config, weights, made, pool),
    };
  }

  async #runMicroBatch(
    request: PassRequest,
    runners: PassRunners,
    batch: MicroBatch,
    table: RowTable,
    sum: GradientSum | undefined,
    report: (fraction: number) => void,
  ): Promise<void> {
    const pass = this.#layerPass(request, batch, sum, report);
    const { arrangement } = batch;
    const { short, long, head } = runners;
    if (arrangement.kind === "short") {
      await this.#runThrough(request, short, head, { ...pass, arrangement }, batch, table, sum);
    } else {
      await this.#runThrough(request, long, head, { ...pass, arrangement }, batch, table, sum);
    }
  }

  async #runThrough<A extends ShortArrangement | LongArrangement>(
    request: PassRequest,
    layers: LayerRunner<A>,
    head: HeadRunner,
    pass: LayerPass<A>,
    batch: MicroBatch,
    table: RowTable,
    sum: GradientSum | undefined,
  ): Promise<void> {
    const { pool } = this.#model;
    const { parameters, pause } = request;
    const backward = sum !== undefined && table.activeRows().length > 0;
    const throughLayers = backward && this.#trainsLayers();
    const keep = throughLayers ? this.#keep(batch) : "nothing";
    const embedded = this.#embed(batch.tokens, parameters);
    const { hidden, kept } = await layers.forward(pass, embedded, keep);
    const headPass = {
      loss: request.loss,
      rank: parameters.rank,
      feeds: { ...this.#sharedFeeds(parameters), ...this.#outerFeeds(parameters) },
      pause,
    };
    if (backward) {
      const gradient = await head.backward(headPass, hidden, table, sum, throughLayers);
      const ofInput = gradient && (await layers.backward(pass, kept, gradient));
      if (ofInput !== undefined) {
        sum.addEmbeddingRows(batch.tokens, ofInput, this.#model.config.embeddingScale);
        pool.giveBack(ofInput);
      }
    } else {
      await head.forward(headPass, hidden, table);
    }
    pool.giveBack(hidden);
  }

  #layerPass(
    request: PassRequest,
    batch: MicroBatch,
    sum: GradientSum | undefined,
    report: (fraction: number) => void,
  ): LayerPass {
    const { parameters, pause } = request;
    // The head counts as one more layer.
    const toPass = (this.#model.config.layers + 1) * (sum === undefined ? 1 : 2);
    let passed = 0;
    const rotary = this.#model.rotary(Math.max(...batch.lengths));
    return {
      tokenCount: batch.tokens.length,
      positions: rotary.rowsOf(batch.lengths),
      rotary,
      arrangement: batch.arrangement,
      parameters: {
        rank: parameters.rank,
        shared: this.#sharedFeeds(parameters),
        feeds: (layer) => viewsAt(parameters.layout, parameters.values, layer),
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

  /** Parameters outside the layers; a tied unembedding is fed the embedding. */
  #outerFeeds({ layout, values }: PassParameters): Record<string, Float32Array> {
    const { embedding, ...feeds } = viewsAt(layout, values, "outer");
    return embedding === undefined ? feeds : { head: embedding, ...feeds };
  }

  #embed(tokens: Int32Array, parameters: PassParameters): Float32Array {
    const { config, pool, weights } = this.#model;
    const own = viewsAt(parameters.layout, parameters.values, "outer").embedding;
    const rows = pool.take(tokens.length * config.hiddenSize);
    embedTokens(config, own ?? weights.embedding, tokens, rows);
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

function refuseNonFinite(terms: Float32Array, index: number): void {
  const bad = terms.findIndex((term) => !Number.isFinite(term));
  if (bad < 0) return;
  throw new EngineError(
    "not_finite",
    `data[${index}]: the loss at target ${bad} is ${terms[bad]}. Check that logprobs are those of ` +
      "these tokens and that weights or advantages are of a moderate size.",
  );
}
