import path from "node:path";
import type { ServiceClient } from "tinker-ts";
import type { CheckpointRow, RunSink } from "tinker-ts/run-log";
import type { Message, Renderer } from "../renderers/index.js";
import {
  groupDataset,
  rlOptionNames,
  train as trainByRewards,
  type RlTrainOptions,
} from "../rl/index.js";
import { chooseRenderer, pickOptions, type RunResult } from "../runs/index.js";
import { train as trainOnExamples, type TrainOptions } from "../supervised/index.js";
import { chatPreferenceModel, trainRewardModel, type RewardModelOptions } from "./reward-model.js";
import { tournamentGroup, type TournamentGroupOptions } from "./tournament-group.js";

/** Options that the pipeline sets for all stages. */
type Shared = "service" | "model" | "folder" | "ifExists" | "signal" | "sinks" | "renderer";

/** A model that learns from examples, then a judge that learns from comparisons, then the model from the judge. */
export interface PreferencePipelineOptions {
  /** Where the models are trained. */
  readonly service: ServiceClient;
  /** The name of a model that the server supports. */
  readonly model: string;
  /** The parent of the folders of the stages: `sft`, `reward_model`, `rl`. Finished stages are not repeated. */
  readonly folder: string;
  /** The chat format: a renderer or its name. @default the one recommended for the model */
  readonly renderer?: Renderer | string | undefined;
  /** Learning from examples; left out, the model is taken as it is. */
  readonly supervised?: Omit<TrainOptions, Shared> | undefined;
  /** Learning to judge. */
  readonly rewardModel: Omit<RewardModelOptions, Shared>;
  /** Learning from the judge. */
  readonly rl: Omit<RlTrainOptions, Shared | "dataset" | "learningRate" | "maxTokens"> &
    Omit<TournamentGroupOptions, "judge" | "renderer"> & {
      /** What is answered. */
      readonly prompts: readonly (string | readonly Message[])[];
      /** Prompts per step. @default 32 */
      readonly groupsPerBatch?: number | undefined;
      /** How often the prompts are gone through. @default 1 */
      readonly numEpochs?: number | undefined;
      /** Most tokens of an answer. @default 1024 */
      readonly maxTokens?: number | undefined;
      /** The rate of every update. @default 1e-5 */
      readonly learningRate?: number | undefined;
    };
  /** Further destinations of the logs of the stages. */
  readonly sinks?: ((stage: PipelineStage) => readonly RunSink[]) | undefined;
  /** Ends the stage under way with a checkpoint to go on from. */
  readonly signal?: AbortSignal | undefined;
}

/** A stage by the name of its folder. */
export type PipelineStage = "sft" | "reward_model" | "rl";

/** How far the pipeline came. */
export interface PipelineResult {
  /** `interrupted`: call again to go on. */
  readonly status: "completed" | "interrupted";
  /** The last stage that was worked on. */
  readonly stage: PipelineStage;
  /** What became of each. */
  readonly stages: Readonly<Partial<Record<PipelineStage, RunResult>>>;
  /** The last checkpoint of the model itself. */
  readonly checkpoint: CheckpointRow | undefined;
}

/**
 * The three stages of learning from human feedback, each in a folder of its own. Called again, it resumes the
 * interrupted stage and skips finished ones.
 */
export async function trainFromPreferences(
  options: PreferencePipelineOptions,
): Promise<PipelineResult> {
  const { service, model, folder, supervised, rewardModel, rl, signal } = options;
  const tokenizer = await (
    await service.createSamplingClient({ baseModel: model, signal })
  ).getTokenizer({ signal });
  const renderer = await chooseRenderer({ ...options, tokenizer });
  const stages: Partial<Record<PipelineStage, RunResult>> = {};
  const placeOf = (stage: PipelineStage) => ({
    service,
    model,
    renderer,
    signal,
    folder: path.join(folder, stage),
    recipeName: stage,
    sinks: options.sinks?.(stage),
  });
  const end = (stage: PipelineStage): PipelineResult => {
    const isInterrupted = stages[stage]!.status === "interrupted";
    const status = isInterrupted ? "interrupted" : "completed";
    return { status, stage, stages, checkpoint: (stages.rl ?? stages.sft)?.checkpoint };
  };

  if (supervised) {
    stages.sft = await trainOnExamples({ learningRate: 2e-4, ...supervised, ...placeOf("sft") });
    if (stages.sft.status === "interrupted") return end("sft");
  }
  stages.reward_model = await trainRewardModel({ ...rewardModel, ...placeOf("reward_model") });
  if (stages.reward_model.status === "interrupted") return end("reward_model");

  const { prompts, groupsPerBatch = 32, numEpochs, maxTokens = 1024, learningRate = 1e-5 } = rl;
  const modelPath = stages.reward_model.checkpoint!.samplerPath!;
  const judge = chatPreferenceModel(
    await service.createSamplingClient({ modelPath, signal }),
    renderer,
  );
  const start = rl.loadCheckpointPath ?? stages.sft?.checkpoint?.statePath;
  stages.rl = await trainByRewards({
    ...pickOptions({ ...rl, ...placeOf("rl") }, rlOptionNames),
    loadCheckpointPath: start,
    maxTokens,
    learningRate,
    dataset: groupDataset(
      prompts,
      (prompt) => tournamentGroup(prompt, { ...rl, renderer, judge }),
      { groupsPerBatch: Math.min(groupsPerBatch, prompts.length), numEpochs, seed: rl.seed },
    ),
  });
  return end("rl");
}
