import type {
  EnvironmentGroup,
  RlSetup,
  RlTrainOptions,
  TrajectoryGroup,
} from "@tinker-ts/cookbook/rl";
import type { Renderer } from "@tinker-ts/cookbook/renderers";
import type { RunResult } from "@tinker-ts/cookbook/runs";
import type { SamplingClient } from "tinker-ts";
import { defineCommand, type CommandContext } from "../../command.js";
import { findCheckpoint } from "../../connect/model-source.js";
import { orLocal } from "../../connect/or-local.js";
import { withService, type OpenService } from "../../connect/with-service.js";
import { CliError } from "../../errors/cli-error.js";
import type { ArgumentSpecs, OptionSpecs, OptionValues } from "../../parse/option-spec.js";
import { formatSeconds } from "../../training/estimate.js";
import { loadModule, refuseModule } from "../../training/load-module.js";
import { moduleOptions, readRate } from "../../parse/training-options.js";
import { openRunFolder, runTraining } from "../../training/run-training.js";
import { oneLine, plural, snakeCase } from "../../training/texts.js";
import { printEnd, resultJson } from "../../training/trained.js";

const specs = {
  ...moduleOptions,
  lr: {
    type: "string",
    placeholder: "RATE",
    description: "Learning rate; by default the module's, else the model's recommended one",
  },
  maxTokens: { type: "integer", min: 1, description: "Maximum tokens of a turn; 256 by default" },
  temperature: { type: "number", min: 0, description: "Sampling temperature; 1 by default" },
  loss: {
    type: "string",
    choices: ["importance_sampling", "ppo", "cispo", "dro"],
    description: "Loss on sampled tokens; importance_sampling by default",
  },
  advantages: {
    type: "string",
    choices: ["meanCentred", "leaveOneOut", "normalized", "reinforcePlusPlus", "rawRewards"],
    description: "Advantage estimator; meanCentred by default",
  },
  maxStepsOffPolicy: {
    type: "integer",
    min: 0,
    description: "Play groups while others are trained, with a policy at most N steps old",
  },
  groupsPerBatch: {
    type: "integer",
    min: 1,
    description: "Groups per step with --max-steps-off-policy; by default as many as a batch has",
  },
  klCoefficient: {
    type: "number",
    min: 0,
    description: "Strength of the penalty on the distance from the initial model",
  },
} as const satisfies OptionSpecs;

const args = {
  module: { description: "Module (.js, .mjs, .ts) that exports the episodes" },
} as const satisfies ArgumentSpecs;

type Options = OptionValues<typeof specs>;

const shownEpisodes = 3;

/** `train rl` */
export const command = defineCommand({
  summary: "Train a model by rewards; a module has the episodes and their rewards.",
  details: [
    "The module's default export is a function that gets { renderer, tokenizer, sampling, seed, … } and returns { dataset: { length, batch(index) } }, with further settings. Options of the command take precedence.",
    "Without a server and a key, the engine in this process trains.",
    "Ctrl-C saves and prints the command to resume; --resume continues a killed run from its last checkpoint.",
  ],
  options: specs,
  arguments: args,
  examples: [
    "train rl game.mjs --model tinker-ts/sprout",
    "train rl game.mjs --model tinker-ts/sprout --lr 2e-3 --max-tokens 24 --max-steps 20",
    "train rl game.mjs --model tinker-ts/sprout --dry-run",
  ],
  async run(given, { arguments: { module }, options }) {
    const context = orLocal(given);
    const { signal } = context;
    const { cwd } = context.terminal;
    const chosen = { ...options, load: await findCheckpoint(options.load, cwd) };
    const found = await loadModule(module, cwd, {
      name: "rl",
      example: "export default ({ renderer }) => ({ dataset: { length: 100, batch: () => […] } })",
    });
    const place = await openRunFolder(cwd, module, chosen);
    return withService(context, async (open) => {
      const { service } = open;
      const task = await openTask(context, open, found, chosen, place);
      const first = await playFirst(context, task);
      const plan = await toPlan(task, first);
      return runTraining(context, {
        words: ["train", "rl", module],
        specs,
        chosen,
        folder: place.folder,
        plan,
        totalSteps: task.steps,
        metrics: [
          "env/all/reward/total",
          "rollout_errors/total",
          "env/all/by_group/frac_mixed",
          /^test\/env\/all\/reward/,
        ],
        showPlan: () => showPlan(context, task, first, plan),
        async train(sinks) {
          const { train } = await import("@tinker-ts/cookbook/rl");
          return train({ ...task.train, service, signal, sinks });
        },
        async report(result) {
          const { samplerPath } = result.checkpoint!;
          const trained = await service.createSamplingClient({ modelPath: samplerPath!, signal });
          printResult(context, task, result, {
            first,
            last: await playFirst(context, task, trained),
          });
        },
      });
    });
  },
});

/** The module's task with the options of the command. */
interface Task {
  readonly train: Omit<RlTrainOptions, "service" | "signal" | "sinks">;
  readonly base: SamplingClient;
  readonly renderer: Renderer;
  /** The groups of the first batch. */
  readonly groups: readonly EnvironmentGroup[];
  readonly steps: number;
}

async function openTask(
  { signal }: CommandContext,
  { service }: OpenService,
  found: unknown,
  chosen: Options,
  place: Pick<RlTrainOptions, "folder" | "ifExists">,
): Promise<Task> {
  const { chooseRenderer, findContextLength } = await import("@tinker-ts/cookbook/runs");
  const { readRlModule } = await import("@tinker-ts/cookbook/rl");
  const { model, seed } = chosen;
  const base = await service.createSamplingClient(
    chosen.load === undefined ? { baseModel: model, signal } : { modelPath: chosen.load, signal },
  );
  const tokenizer = await base.getTokenizer();
  const renderer = await chooseRenderer({ ...chosen, tokenizer, service, signal });
  const made = { service, model, sampling: base, renderer, tokenizer, seed, signal };
  const setup = await readRlModule(found, made).catch(refuseModule);
  const groups = await setup.dataset.batch(0);
  if (groups.length === 0) throw new CliError("The first batch of the module has no groups.");
  const train = {
    contextWindow: await findContextLength({ service, model, signal }),
    ...setup,
    ...(await settingsOf(chosen, setup, base, groups.length)),
    model,
    seed,
    ...place,
    recipeName: setup.recipeName ?? "train rl",
  };
  const { length } = setup.dataset;
  const { mode } = train;
  // Asynchronously a step takes what it needs of the groups, whatever batch they came in.
  const most =
    mode?.kind === "asynchronous"
      ? Math.ceil((length * groups.length) / mode.groupsPerBatch)
      : length;
  return { train, base, renderer, groups, steps: Math.min(most, train.maxSteps ?? most) };
}

/** Options of the command take precedence over the module's, which take precedence over defaults. */
async function settingsOf(
  chosen: Options,
  setup: RlSetup,
  base: SamplingClient,
  groupsPerBatch: number,
): Promise<Pick<RlTrainOptions, "learningRate" | "maxTokens"> & Partial<RlTrainOptions>> {
  const rl = await import("@tinker-ts/cookbook/rl");
  const { maxStepsOffPolicy, klCoefficient, advantages, loss } = chosen;
  if (chosen.groupsPerBatch !== undefined && maxStepsOffPolicy === undefined) {
    throw new CliError("--groups-per-batch needs --max-steps-off-policy.");
  }
  const penalty = klCoefficient ? [rl.klPenalty(base, { coefficient: klCoefficient })] : [];
  const given = {
    maxTokens: chosen.maxTokens,
    temperature: chosen.temperature,
    loraRank: chosen.rank,
    maxSteps: chosen.maxSteps,
    maxFailedSteps: chosen.maxFailedSteps,
    saveEvery: chosen.saveEvery,
    loadCheckpointPath: chosen.load,
    loss: loss && { name: loss },
    advantages: advantages && rl[advantages],
    mode:
      maxStepsOffPolicy === undefined
        ? undefined
        : ({
            kind: "asynchronous",
            maxStepsOffPolicy,
            groupsPerBatch: chosen.groupsPerBatch ?? groupsPerBatch,
          } as const),
  };
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  return {
    maxTokens: setup.maxTokens ?? 256,
    ...Object.fromEntries(set),
    learningRate: await rateOf(chosen, setup),
    adjusters: [...(setup.adjusters ?? []), ...penalty],
  };
}

async function rateOf({ lr, model }: Options, setup: RlSetup): Promise<number> {
  if (lr !== undefined) return readRate(lr);
  if (setup.learningRate !== undefined) return setup.learningRate;
  const { defaultLearningRate } = await import("@tinker-ts/cookbook/runs");
  return defaultLearningRate(model, { otherwise: 1e-4 });
}

/** The first group, played by a model. */
interface Played {
  readonly group: TrajectoryGroup;
  readonly reward: number;
  readonly seconds: number;
}

async function playFirst(
  { signal }: CommandContext,
  { train, base, groups }: Task,
  sampling: SamplingClient = base,
): Promise<Played> {
  const { rolloutGroup, samplingPolicy, totalRewards } = await import("@tinker-ts/cookbook/rl");
  const started = performance.now();
  const policy = samplingPolicy(sampling, train);
  const group = await rolloutGroup(policy, groups[0]!, { ...train, signal });
  const rewards = totalRewards(group);
  return {
    group,
    reward: rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length,
    seconds: (performance.now() - started) / 1000,
  };
}

/** What will be trained. */
interface Plan {
  readonly model: string;
  readonly steps: number;
  readonly groupsPerStep: number;
  readonly episodesPerGroup: number;
  readonly meanReward: number;
  readonly learningRate: number;
  readonly rank: number;
  readonly maxTokens: number;
  readonly loss: string;
  readonly mode: string;
  readonly estimatedSeconds: number;
  readonly folder: string;
  readonly warnings: readonly string[];
}

async function toPlan({ train, groups, steps }: Task, first: Played): Promise<Plan> {
  const { group, reward, seconds } = first;
  const { model, folder, learningRate, maxTokens, loss, mode, loraRank = 32 } = train;
  return {
    model,
    steps,
    groupsPerStep: groups.length,
    episodesPerGroup: group.trajectories.length,
    meanReward: reward,
    learningRate,
    rank: loraRank,
    maxTokens,
    loss: loss?.name ?? "importance_sampling",
    mode: mode?.kind ?? "synchronous",
    // Training on a group takes about as long as playing it.
    estimatedSeconds: 2 * seconds * groups.length * steps,
    folder,
    warnings: await previewWarnings(first, maxTokens),
  };
}

/** Problems of the first group that can keep a run from learning. */
async function previewWarnings({ group }: Played, maxTokens: number): Promise<string[]> {
  const { isConstant, totalRewards } = await import("@tinker-ts/cookbook/rl");
  const turns = group.trajectories.flatMap(({ transitions }) => transitions);
  const isCut = turns.every(({ action }) => action.stopReason === "length");
  const [reward = 0] = totalRewards(group);
  return [
    isCut ? [`every answer was cut at ${plural(maxTokens, "token")}`] : [],
    isConstant(group)
      ? [
          `all rewards of this group are ${reward.toPrecision(3)}; a group of equal rewards teaches nothing`,
        ]
      : [],
  ].flat();
}

/** Prints some episodes of the untrained model, and the plan as a table. */
function showPlan({ output }: CommandContext, task: Task, first: Played, plan: Plan): void {
  output.line(output.style.bold("First group, played by the untrained model:"));
  for (const text of episodeTexts(task, first.group)) output.line(text);
  for (const warning of plan.warnings) output.line(`${output.style.bold("Warning:")} ${warning}`);
  output.line("");
  const { groupsPerStep, episodesPerGroup } = plan;
  output.result({
    json: () => snakeCase(plan),
    table: () => ({
      title: `Training ${plan.model} by rewards`,
      headers: ["Property", "Value"],
      rows: [
        [
          "Steps",
          `${plural(plan.steps, "step")} of ${plural(groupsPerStep, "group")} with ${plural(episodesPerGroup, "episode")}`,
        ],
        ["Mean reward", `${plan.meanReward.toPrecision(3)} in the first group`],
        ["Learning rate", plan.learningRate.toPrecision(3)],
        ["Loss", `${plan.loss}, ${plan.mode}`],
        ["Turns", `at most ${plural(plan.maxTokens, "token")} each`],
        ["Adapter", `rank ${plan.rank}`],
        ["Estimate", `about ${formatSeconds(plan.estimatedSeconds)}`],
        ["Folder", plan.folder],
      ],
    }),
  });
}

/** Some episodes as text: the first prompt, and the answers turn by turn. */
function episodeTexts(
  { renderer }: Task,
  { trajectories, finalRewards }: TrajectoryGroup,
): string[] {
  return trajectories.slice(0, shownEpisodes).map(({ transitions, stopReason }, member) => {
    const reward = transitions.reduce((sum, turn) => sum + turn.reward, finalRewards[member] ?? 0);
    const [first] = transitions;
    const isText = first?.observation.chunks.every(({ type }) => type === "encoded_text");
    const asked = isText ? renderer.tokenizer.decode(first!.observation.toInts()) : "(pictures)";
    const said = transitions.map(
      ({ action }) => `  > ${oneLine(renderer.tokenizer.decode(action.tokens))}`,
    );
    const lines = member === 0 ? [`  ${oneLine(asked)}`, ...said] : said;
    return [...lines, `    reward ${reward.toPrecision(3)}, ${stopReason}`].join("\n");
  });
}

function printResult(
  context: CommandContext,
  task: Task,
  result: RunResult,
  { first, last }: { readonly first: Played; readonly last: Played },
): void {
  const { output } = context;
  if (output.isJson) {
    output.json({
      ...resultJson(result),
      reward_before: first.reward,
      reward_after: last.reward,
    });
    return;
  }
  output.line(output.style.bold("\nFirst group, played by the trained model:"));
  for (const text of episodeTexts(task, last.group)) output.line(text);
  const [before, after] = [first.reward.toPrecision(3), last.reward.toPrecision(3)];
  output.line(`\nIts mean reward: ${before} before, ${output.style.bold(after)} now`);
  printEnd(context, result);
}
