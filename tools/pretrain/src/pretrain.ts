import path from "node:path";
import { Engine, readModelConfig, type FullTuning } from "@tinker-ts/engine";
import { loadTokenizer } from "@tinker-ts/hub";
import { makeBatch } from "./batches.js";
import { readCheckpoint, writeCheckpoint, type Checkpoint } from "./checkpoint.js";
import { writeModelSkeleton, writeModelWeights } from "./model-files.js";
import { learningRateAt, type Recipe } from "./recipe.js";

/** How a model is pre-trained. */
export interface PretrainOptions {
  readonly recipe: Recipe;
  /** Where the finished model is written. */
  readonly outputFolder: string;
  /** Where checkpoints are kept; a run that was ended goes on from there. */
  readonly workFolder: string;
  /** @default all cores */
  readonly threads?: number;
  /** Time between checkpoints. @default two minutes */
  readonly checkpointEveryMs?: number;
  /** Ends the run after its current step, with a checkpoint. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: PretrainProgress) => void;
}

/** How far a run has come. */
export interface PretrainProgress {
  readonly step: number;
  readonly steps: number;
  /** Tokens that were trained on, in all. */
  readonly tokens: number;
  /** Of this step. */
  readonly stepTokens: number;
  readonly stepMs: number;
  /** Nats per token of this step's batch, mostly of what is taught. */
  readonly loss: number;
  readonly learningRate: number;
}

const defaultCheckpointEveryMs = 120_000;

/**
 * Pre-trains a model on the corpus and writes it as a Hugging Face folder.
 *
 * - Batches follow from the number of their first document, so a run that is continued sees what the
 *   uninterrupted one would have seen.
 * - While a step computes, the next batch is made.
 */
export async function pretrain(options: PretrainOptions): Promise<void> {
  const { recipe, outputFolder, workFolder, signal } = options;
  const checkpointFile = path.join(workFolder, "checkpoint.safetensors");
  const checkpoint = await readCheckpoint(checkpointFile, recipe);
  await writeModelSkeleton(workFolder, recipe);
  await using engine = await Engine.create(options.threads ? { threads: options.threads } : {});
  const model = await engine.createModel(await readModelConfig(workFolder), { seed: recipe.seed });
  const tuning = await model.createFullTuning();
  if (checkpoint !== null) await tuning.importState(checkpoint.state, { optimizer: true });

  const save = async (position: Position): Promise<void> => {
    const state = await tuning.exportState({ optimizer: true });
    await writeCheckpoint(checkpointFile, recipe, { ...position, state: withOptimizer(state) });
  };
  const finished = await trainSteps(tuning, options, checkpoint ?? start, save);
  await save(finished);
  signal?.throwIfAborted();
  const { tensors } = await tuning.exportState();
  await writeModelSkeleton(outputFolder, recipe);
  await writeModelWeights(outputFolder, tensors);
}

type Position = Pick<Checkpoint, "step" | "tokens" | "nextDocument">;

const start: Position = { step: 0, tokens: 0, nextDocument: 0 };

async function trainSteps(
  tuning: FullTuning,
  options: PretrainOptions,
  from: Position,
  save: (position: Position) => Promise<void>,
): Promise<Position> {
  const { recipe, workFolder, signal, onProgress } = options;
  const { steps, batchTokens, contextLength, beta2, weightDecay, gradClipNorm } = recipe;
  const tokenizer = await loadTokenizer(workFolder);
  const batchFrom = (document: number) =>
    makeBatch(tokenizer, "training", document, { batchTokens, contextLength, weights: "taught" });
  let position = from;
  let batch = batchFrom(position.nextDocument);
  let savedAt = performance.now();
  while (position.step < steps) {
    if (signal?.aborted) break;
    const startedAt = performance.now();
    const learningRate = learningRateAt(recipe, position.step);
    const pass = tuning.forwardBackward(batch.data, { lossFn: "cross_entropy" });
    const stepped = tuning.optimStep({ learningRate, beta2, weightDecay, gradClipNorm });
    const next = batchFrom(batch.nextDocument);
    const [{ metrics }] = await Promise.all([pass, stepped]);
    const now = performance.now();
    position = {
      step: position.step + 1,
      tokens: position.tokens + batch.tokens,
      nextDocument: batch.nextDocument,
    };
    onProgress?.({
      ...position,
      steps,
      stepTokens: batch.tokens,
      stepMs: now - startedAt,
      loss: metrics["loss:sum"] ?? NaN,
      learningRate,
    });
    batch = next;
    if (now - savedAt < (options.checkpointEveryMs ?? defaultCheckpointEveryMs)) continue;
    await save(position);
    savedAt = performance.now();
  }
  return position;
}

function withOptimizer(state: Awaited<ReturnType<FullTuning["exportState"]>>): Checkpoint["state"] {
  const { tensors, optimizer } = state;
  if (optimizer === undefined) throw new Error("the state was exported without its optimizer");
  return { tensors, optimizer };
}
