import type { LayerKind } from "@tinker-ts/hub/weights";
import type { BufferPool } from "../execution/buffer-pool.js";
import type { PortValues, Program } from "../execution/program.js";
import { type LongArrangement, slotsOf } from "./micro-batch.js";
import { gradientName } from "./graphs/trained.js";
import { inSegment } from "./graphs/segment.js";
import { endName, scanChunk, startName } from "./graphs/training-recurrence.js";
import { defined, type Activations, type LayerPass } from "./layer-runner.js";
import { computeGradients, type TrainingPrograms } from "./training-programs.js";

/** Values of the layer in the pass. */
export interface RecurrentLayer {
  readonly layer: number;
  readonly kind: LayerKind;
  /** Whether the gradient of the hidden states before it is wanted. */
  readonly inputGradient: boolean;
  /** Weights and parameters, by the names of a segment's first layer. */
  readonly feeds: PortValues;
}

interface Block {
  readonly index: number;
  readonly start: number;
  readonly end: number;
}

const [startPrefix, endPrefix] = [inSegment(0, startName("")), inSegment(0, endName(""))];

/**
 * Passes a long sequence through a layer with a state block by block: each block begins with the state that the one before
 * it ended with, and on the way back hands the gradient of its first state to that one.
 */
export class RecurrentBlocks {
  readonly #hiddenSize: number;
  readonly #blockTokens: number;
  readonly #programs: TrainingPrograms;
  readonly #pool: BufferPool;

  constructor(
    hiddenSize: number,
    blockTokens: number,
    programs: TrainingPrograms,
    pool: BufferPool,
  ) {
    if (blockTokens % scanChunk !== 0) throw new Error("blocks must be of whole chunks");
    this.#hiddenSize = hiddenSize;
    this.#blockTokens = blockTokens;
    this.#programs = programs;
    this.#pool = pool;
  }

  /** The hidden states after the layer, and the kept values of each block under its own prefix. */
  async forward(
    pass: LayerPass<LongArrangement>,
    layer: RecurrentLayer,
    hidden: Float32Array,
  ): Promise<Activations & { readonly next: Float32Array }> {
    const next = this.#pool.take(hidden.length);
    const kept: Activations = {};
    for (const block of this.#blocks(pass)) {
      const program = await this.#programs.segmentForward(shapeOf(layer, block));
      const sizes = this.#sizes(pass, block);
      const results: Activations = {};
      for (const [name, length] of program.resultLengths(sizes)) {
        if (name === "next") results[name] = this.#rows(block, next);
        else results[name] = kept[ofBlock(block.index, name)] = this.#pool.take(length);
      }
      const feeds = {
        ...this.#feeds(layer, block, hidden),
        ...this.#starts(program, kept, block, sizes),
      };
      await pass.pause();
      await program.run(feeds, results, sizes);
    }
    return { ...kept, next };
  }

  /** Adds the gradients of the layer's parameters; returns that of the hidden states before it, if it is wanted. */
  async backward(
    pass: LayerPass<LongArrangement>,
    layer: RecurrentLayer,
    activations: Activations,
    gradient: Float32Array,
  ): Promise<Float32Array | undefined> {
    const hidden = defined(activations.hidden);
    const ofHidden = layer.inputGradient ? this.#pool.take(hidden.length) : undefined;
    let ofEnds: Activations = {};
    for (const block of this.#blocks(pass).toReversed()) {
      const program = await this.#programs.segmentBackward(shapeOf(layer, block));
      const sizes = this.#sizes(pass, block);
      const own = `${block.index} `;
      const kept = Object.fromEntries(
        Object.entries(activations)
          .filter(([name]) => name.startsWith(own))
          .map(([name, values]) => [name.slice(own.length), values]),
      );
      const feeds: Record<string, PortValues[string]> = {
        ...this.#feeds(layer, block, hidden),
        ...kept,
        ...this.#starts(program, activations, block, sizes),
        [gradientName("next")]: this.#rows(block, gradient),
      };
      for (const [name, values] of Object.entries(kept)) {
        if (!name.startsWith(endPrefix)) continue;
        const ofEnd = gradientName(name);
        feeds[ofEnd] = ofEnds[name] ?? new Float32Array(values.length);
      }
      const call = { program, feeds, sizes, pause: pass.pause };
      const values = await computeGradients(this.#pool, call, pass.parameters, (result) =>
        targetOf(layer.layer, result),
      );
      this.#pool.giveBack(...Object.values(ofEnds));
      ofEnds = {};
      for (const [name, data] of Object.entries(values)) {
        if (name === gradientName("hidden") && ofHidden !== undefined) {
          this.#rows(block, ofHidden).set(data);
          this.#pool.giveBack(data);
        } else {
          ofEnds[name.replace(gradientName(startPrefix), endPrefix)] = data;
        }
      }
    }
    this.#pool.giveBack(...Object.values(ofEnds));
    return ofHidden;
  }

  #blocks({ tokenCount }: LayerPass<LongArrangement>): readonly Block[] {
    const size = this.#blockTokens;
    return Array.from({ length: Math.ceil(tokenCount / size) }, (_, index) => ({
      index,
      start: index * size,
      end: Math.min(tokenCount, (index + 1) * size),
    }));
  }

  #feeds(layer: RecurrentLayer, block: Block, hidden: Float32Array): PortValues {
    const { start, end } = block;
    const slots = slotsOf([end - start], 1, chunksOf(block) * scanChunk);
    return { ...layer.feeds, hidden: this.#rows(block, hidden), slots };
  }

  /** The states that a block begins with. */
  #starts(
    program: Program,
    kept: Activations,
    { index }: Block,
    sizes: Readonly<Record<string, number>>,
  ): PortValues {
    const starts: Record<string, Float32Array> = {};
    for (const [name, length] of program.feedLengths(sizes)) {
      if (!name.startsWith(startPrefix)) continue;
      const before = name.replace(startPrefix, endPrefix);
      starts[name] =
        index === 0 ? new Float32Array(length) : defined(kept[ofBlock(index - 1, before)]);
    }
    return starts;
  }

  #sizes(pass: LayerPass<LongArrangement>, { start, end }: Block) {
    return {
      sequences: 1,
      queries: end - start,
      keys: end - start,
      tokens: end - start,
      positions: pass.tableRows,
      rank: pass.parameters.rank,
    };
  }

  #rows({ start, end }: Block, array: Float32Array): Float32Array {
    return array.subarray(start * this.#hiddenSize, end * this.#hiddenSize);
  }
}

function shapeOf({ kind, inputGradient }: RecurrentLayer, block: Block) {
  return {
    kinds: [kind],
    layout: "dense",
    chunks: chunksOf(block),
    handsOn: true,
    inputGradient,
    keep: "dear",
  } as const;
}

function chunksOf({ start, end }: Block): number {
  return Math.ceil((end - start) / scanChunk);
}

function ofBlock(index: number, name: string): string {
  return `${index} ${name}`;
}

function targetOf(layer: number, result: string) {
  if (result === gradientName("hidden")) return undefined;
  const prefix = gradientName(inSegment(0, ""));
  const feed = result.slice(prefix.length);
  return feed.startsWith(startName("")) ? undefined : { result, place: layer, feed };
}
