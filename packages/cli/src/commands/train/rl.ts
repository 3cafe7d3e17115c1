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
import { orLocal } from "../../connect/or-local.js";
import { withService, type OpenService } from "../../connect/with-service.js";
import { CliError } from "../../errors/cli-error.js";
import type { ArgumentSpecs, OptionSpecs, OptionValues } from "../../parse/option-spec.js";
import { formatSeconds } from "../../training/estimate.js";
import { tellInterruption } from "../../training/interruption.js";
import { liveSink } from "../../training/live-sink.js";
import { loadModule, refuseModule } from "../../training/load-module.js";
import { moduleOptions, readRate, resumeLine, runFolder } from "../../parse/training-options.js";
import { checkRunFolder } from "../../training/run-folder.js";
import { count, oneLine, snakeCase } from "../../training/texts.js";
import { tellWhatNext } from "../../training/trained.js";

const options = {
  ...moduleOptions,
  lr: {
    type: "string",
    placeholder: "RATE",
    description: "The learning rate; by default the module's, else the model's recommended one",
  },
  maxTokens: { type: "integer", min: 1, description: "Most tokens of a turn; 256 by default" },
  temperature: { type: "number", min: 0, description: "How freely is sampled; 1 by default" },
  loss: {
    type: "string",
    choices: ["importance_sampling", "ppo", "cispo", "dro"],
    description: "The loss on sampled tokens; importance_sampling by default",
  },
  advantages: {
    type: "string",
    choices: ["meanCentred", "leaveOneOut", "normalized", "reinforcePlusPlus", "rawRewards"],
    description: "How rewards become advantages; meanCentred by default",
  },
  maxStepsOffPolicy: {
    type: "integer",
    min: 0,
    description: "Plays groups while others are trained, with a policy at most so many steps old",
  },
  groupsPerBatch: {
    type: "integer",
    min: 1,
    description: "With --max-steps-off-policy: groups per step; by default as many as a batch has",
  },
  klCoefficient: {
    type: "number",
    min: 0,
    description: "Keeps the policy near the model as it was: how strongly",
  },
  dryRun: {
    type: "flag",
    description: "Plays the first group with the model as it is, and trains nothing",
  },
} as const satisfies OptionSpecs;

const args = {
  module: { description: "A module (.js, .mjs, .ts) that exports what is played" },
} as const satisfies ArgumentSpecs;

type Options = OptionValues<typeof options>;

const shownEpisodes = 3;

/** `train rl` */
export const command = defineCommand({
  summary: "Trains a model by rewards: a module says what is played and what it is worth.",
  details: [
    "The module's default export is a function that gets { renderer, tokenizer, sampling, seed, … } and returns { dataset: { length, batch(index) } }, with settings of its own where it has any; what is given here wins.",
    "Without a server and a key, the engine in this process trains.",
    "Ctrl-C saves and says how to go on; a run that was killed goes on from its last checkpoint with --resume.",
  ],
  options,
  arguments: args,
  examples: [
    "train rl game.mjs --model tinker-ts/sprout",
    "train rl game.mjs --model tinker-ts/sprout --lr 2e-3 --max-tokens 24 --max-steps 20",
    "train rl game.mjs --model tinker-ts/sprout --dry-run",
  ],
  async run(given, { arguments: { module }, options: chosen }) {
    const context = orLocal(given);
    const { cwd } = context.terminal;
    const folder = runFolder(cwd, module, chosen);
    const found = await loadModule(module, cwd, {
      name: "rl",
      example: "export default ({ renderer }) => ({ dataset: { length: 100, batch: () => […] } })",
    });
    await checkRunFolder(folder, chosen);
    return withService(context, async (open) => {
      const task = await openTask(context, open, found, chosen, folder);
      const first = await playFirst(context, task);
      if (!context.output.isJson) showPlan(context, task, first);
      if (chosen.dryRun) {
        if (context.output.isJson) context.output.json(snakeCase(toPlan(task, first)));
        return undefined;
      }
      const resume = resumeLine(["train", "rl", module], options, chosen, { cwd, folder });
      return trainAndTell(context, open, task, first, resume);
    });
  },
});

/** What is trained: the module's task with what the command line says. */
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
  folder: string,
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
  if (groups.length === 0) throw new CliError("The module's first batch has no groups.");
  const train = {
    contextWindow: await findContextLength({ service, model, signal }),
    ...setup,
    ...(await settingsOf(chosen, setup, base, groups.length)),
    model,
    seed,
    folder,
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

/** What was chosen wins over what the module says; what neither says has a default. */
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
  const { recommendedLearningRate } = await import("@tinker-ts/cookbook/hyperparameters");
  return recommendedLearningRate(model);
}

/** The first group as the model plays it. */
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

function toPlan({ train, groups, steps }: Task, { group, reward, seconds }: Played): object {
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
    // Training what was played takes about as long as playing it.
    estimatedSeconds: 2 * seconds * groups.length * steps,
    folder,
  };
}

/** Some episodes as the model plays them now, and how much there is. */
function showPlan({ output }: CommandContext, task: Task, first: Played): void {
  const plan = toPlan(task, first) as Readonly<Record<string, number | string>>;
  output.line(output.style.bold("The first group, played by the model as it is:"));
  for (const text of episodeTexts(task, first.group)) output.line(text);
  output.line("");
  output.result({
    json: () => snakeCase(plan),
    table: () => ({
      title: `Training ${plan["model"]} by rewards`,
      headers: ["Property", "Value"],
      rows: [
        [
          "Steps",
          `${count(task.steps)} of ${task.groups.length} groups of ${first.group.trajectories.length}`,
        ],
        ["Mean reward", `${first.reward.toPrecision(3)} in the first group`],
        ["Learning rate", Number(plan["learningRate"]).toPrecision(3)],
        ["Loss", `${plan["loss"]}, ${plan["mode"]}`],
        ["Turns", `at most ${plan["maxTokens"]} tokens each`],
        ["Adapter", `rank ${plan["rank"]}`],
        ["Estimate", `about ${formatSeconds(Number(plan["estimatedSeconds"]))}`],
        ["Folder", task.train.folder],
      ],
    }),
  });
}

/** What was said in some episodes: what the policy read first and what it said, turn by turn. */
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

async function trainAndTell(
  context: CommandContext,
  { service }: OpenService,
  task: Task,
  first: Played,
  resume: string,
): Promise<number | void> {
  const { signal } = context;
  const { train } = await import("@tinker-ts/cookbook/rl");
  const { consoleSink } = await import("tinker-ts/run-log");
  const sinks = liveSink(context, consoleSink, task.steps);
  const result = await train({ ...task.train, service, signal, sinks });
  if (result.status === "interrupted") return tellInterruption(context, result, resume);
  const { samplerPath } = result.checkpoint!;
  const trained = await service.createSamplingClient({ modelPath: samplerPath!, signal });
  const last = await playFirst(context, task, trained);
  tellResult(context, task, result, { first, last });
}

function tellResult(
  context: CommandContext,
  task: Task,
  { status, step, totalSteps, folder, checkpoint }: RunResult,
  { first, last }: { readonly first: Played; readonly last: Played },
): void {
  const { output } = context;
  const { samplerPath, statePath } = checkpoint!;
  if (output.isJson) {
    output.json({
      status,
      step,
      total_steps: totalSteps,
      folder,
      state_path: statePath,
      sampler_path: samplerPath,
      reward_before: first.reward,
      reward_after: last.reward,
    });
    return;
  }
  if (status === "unchanged") output.line("There was nothing left to do.");
  output.line(output.style.bold("\nThe first group, played by the trained model:"));
  for (const text of episodeTexts(task, last.group)) output.line(text);
  const [before, after] = [first.reward.toPrecision(3), last.reward.toPrecision(3)];
  output.line(`\nMean reward there: ${before} before, ${output.style.bold(after)} now`);
  tellWhatNext(context, { samplerPath: samplerPath!, statePath: statePath!, folder });
}
