import path from "node:path";
import { conversationToData } from "../data/index.js";
import type { Message } from "../renderers/index.js";
import { train } from "../supervised/index.js";
import type { RecipeContext } from "./recipe.js";

/** What is shown to a model before it learns by itself. */
export interface WarmUpOptions {
  /** Conversations to learn from. */
  readonly conversations: readonly { readonly messages: readonly Message[] }[];
  /** Steps. */
  readonly steps: number;
  /** Conversations per step. */
  readonly batchSize: number;
  /** The highest rate. @default 5e-3 */
  readonly learningRate?: number | undefined;
  /** The adapter's rank. */
  readonly loraRank: number;
}

/** Shows a model the form of a task by examples, so that what it tries can earn something; returns weights to go on with. */
export async function warmUp(
  context: RecipeContext,
  { conversations, steps, batchSize, learningRate = 5e-3, loraRank }: WarmUpOptions,
): Promise<{ readonly statePath: string; readonly samplerPath: string }> {
  const { service, model, renderer, folder, seed, maxSteps, show, signal } = context;
  const length = Math.min(steps, maxSteps ?? steps);
  const result = await train({
    service,
    model,
    renderer,
    folder: path.join(folder, "warm-up"),
    recipeName: "warm-up",
    data: {
      batchesPerEpoch: length,
      batch: (_, step) =>
        Array.from({ length: batchSize }, (_unused, place) => {
          const index = (step * batchSize + place) % conversations.length;
          // Every token counts the same, so that long answers are not thought rarer than they are.
          return conversationToData(conversations[index]!, { renderer, reduction: "none" });
        }).flat(),
    },
    learningRate,
    loraRank,
    evalEvery: 0,
    saveEvery: 0,
    seed,
    sinks: show(length),
    signal,
  });
  signal?.throwIfAborted();
  const { statePath, samplerPath } = result.checkpoint!;
  return { statePath: statePath!, samplerPath: samplerPath! };
}
