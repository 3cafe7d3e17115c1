import type { PreparedData, TrainOptions } from "@tinker-ts/cookbook/supervised";
import { defineCommand, type CommandContext } from "../../command.js";
import { orLocal } from "../../connect/or-local.js";
import { withService, type OpenService } from "../../connect/with-service.js";
import { dataSource } from "../../parse/data-source.js";
import type { ArgumentSpecs, OptionSpecs, OptionValues } from "../../parse/option-spec.js";
import { hasColours } from "../../terminal/style.js";
import { estimateSeconds, formatSeconds } from "../../training/estimate.js";
import { tellInterruption } from "../../training/interruption.js";
import { liveSink } from "../../training/live-sink.js";
import { readRate, resumeLine, rowOptions, runFolder } from "../../parse/training-options.js";
import { checkRunFolder } from "../../training/run-folder.js";
import { questionsOf, sequenceOf } from "../../training/samples.js";
import { count, snakeCase } from "../../training/texts.js";
import { askAll, tellTrained } from "../../training/trained.js";

const options = {
  ...rowOptions,
  eval: { type: "string", placeholder: "FILE", description: "Data to judge by; it is not trained" },
  testSize: {
    type: "integer",
    min: 1,
    description: "Takes this many rows out of the data instead",
  },
  lr: {
    type: "string",
    placeholder: "RATE",
    default: "auto",
    description: "The highest learning rate; auto takes the model's recommended one",
  },
  warmupSteps: {
    type: "integer",
    min: 0,
    default: 0,
    description: "Steps in which the rate rises",
  },
  batchSize: {
    type: "integer",
    min: 1,
    description: "Rows per step; by default such that there are 100 steps",
  },
  trainOn: {
    type: "string",
    choices: [
      "all_assistant_messages",
      "last_assistant_message",
      "last_assistant_turn",
      "all_messages",
      "all_tokens",
    ],
    default: "all_assistant_messages",
    description: "What is learned of a row",
  },
} as const satisfies OptionSpecs;

const args = {
  data: {
    description: "Conversations: a JSONL, JSON, CSV or Parquet file, or hf:ORG/NAME[:SPLIT]",
  },
} as const satisfies ArgumentSpecs;

type Options = OptionValues<typeof options>;

const shownSamples = 3;

/** `train sft` */
export const command = defineCommand({
  summary: "Fine-tunes a model on conversations: from a file to saved weights.",
  details: [
    "Rows may have messages, ShareGPT's conversations, instruction and output, or prompt and completion.",
    "Without a server and a key, the engine in this process trains.",
    "Ctrl-C saves and says how to go on; a run that was killed goes on from its last checkpoint with --resume.",
  ],
  options,
  arguments: args,
  examples: [
    "train sft data.jsonl --model tinker-ts/sprout",
    "train sft data.jsonl --model tinker-ts/sprout --eval held-out.jsonl --epochs 2 --output runs/first",
    "train sft data.jsonl --model tinker-ts/sprout --dry-run",
  ],
  async run(given, { arguments: { data }, options: chosen }) {
    const context = orLocal(given);
    const { cwd } = context.terminal;
    const folder = runFolder(cwd, data, chosen);
    const settings = { ...toTrainOptions(chosen, cwd), data: dataSource(data, cwd), folder };
    await checkRunFolder(folder, chosen);
    return withService(context, async (open) => {
      const { prepareData } = await import("@tinker-ts/cookbook/supervised");
      const prepared = await prepareData({
        ...settings,
        service: open.service,
        signal: context.signal,
      });
      const plan = await makePlan(open, settings, prepared, context.signal);
      if (!context.output.isJson) await showPlan(context, plan, prepared);
      if (chosen.dryRun) {
        if (context.output.isJson) context.output.json(snakeCase(plan));
        return undefined;
      }
      const resume = resumeLine(["train", "sft", data], options, chosen, { cwd, folder });
      const next = { resume, evalFile: chosen.eval ?? data };
      return trainAndTell(context, open, { ...settings, data: prepared }, plan.steps, next);
    });
  },
});

type Settings = Omit<TrainOptions, "service" | "data">;

function toTrainOptions(chosen: Options, cwd: string): Omit<Settings, "folder"> {
  return {
    model: chosen.model,
    evalData: chosen.eval === undefined ? undefined : dataSource(chosen.eval, cwd),
    testSize: chosen.testSize,
    renderer: chosen.renderer,
    learningRate: readRate(chosen.lr, { auto: true }),
    lrSchedule: chosen.lrSchedule,
    warmupSteps: chosen.warmupSteps,
    loraRank: chosen.rank,
    numEpochs: chosen.epochs,
    batchSize: chosen.batchSize,
    maxSteps: chosen.maxSteps,
    maxLength: chosen.maxLength,
    trainOnWhat: chosen.trainOn,
    evalEvery: chosen.evalEvery,
    saveEvery: chosen.saveEvery,
    seed: chosen.seed,
    loadCheckpointPath: chosen.load,
    badRows: chosen.skipBadRows ? "skip" : "fail",
    recipeName: "train sft",
  };
}

/** What will be trained. */
interface Plan {
  readonly model: string;
  readonly rows: number;
  readonly tokens: number;
  readonly learnedTokens: number;
  readonly cutRows: number;
  readonly heldOutRows: number;
  readonly renderer: string;
  readonly steps: number;
  readonly batchSize: number;
  readonly learningRate: number;
  readonly lrSchedule: string;
  readonly rank: number;
  readonly trainedTokens: number;
  readonly estimatedSeconds: number;
  readonly folder: string;
}

async function makePlan(
  { service }: OpenService,
  settings: Settings,
  prepared: PreparedData,
  signal: AbortSignal,
): Promise<Plan> {
  const { recommendedLearningRate } = await import("@tinker-ts/cookbook/hyperparameters");
  const { report, renderer, dataset, batchSize, conversations, testConversations } = prepared;
  const { model, numEpochs = 1, maxSteps = Number.POSITIVE_INFINITY, learningRate } = settings;
  const steps = Math.min(dataset.batchesPerEpoch * numEpochs, maxSteps);
  const data = await dataset.batch(0, 0);
  return {
    model,
    rows: conversations.length,
    tokens: report!.tokens,
    learnedTokens: report!.trainedTokens,
    cutRows: report!.truncatedRows,
    heldOutRows: testConversations.length,
    renderer: renderer!.name,
    steps,
    batchSize: batchSize!,
    learningRate: learningRate === "auto" ? recommendedLearningRate(model) : learningRate!,
    lrSchedule: String(settings.lrSchedule),
    rank: settings.loraRank!,
    trainedTokens: Math.round((report!.tokens / dataset.batchesPerEpoch) * steps),
    estimatedSeconds: steps * (await estimateSeconds({ service, model, data, signal })),
    folder: settings.folder,
  };
}

/** The first example in colours, and how much there is. */
async function showPlan(
  { output, terminal }: CommandContext,
  plan: Plan,
  { dataset, tokenizer, badRows }: PreparedData,
): Promise<void> {
  const { showExample } = await import("@tinker-ts/cookbook/renderers");
  const [first] = await dataset.batch(0, 0);
  const colors = hasColours(terminal, "out");
  output.line(
    output.style.bold(`The first example; what is learned is ${colors ? "green" : "in brackets"}:`),
  );
  output.line(`${showExample(sequenceOf(first!), tokenizer, { colors })}\n`);
  for (const { place, problem } of badRows) output.note(`Left out ${place}: ${problem}`);
  const cut = plan.cutRows > 0 ? `; ${plan.cutRows} rows are cut` : "";
  output.result({
    json: () => snakeCase(plan),
    table: () => ({
      title: `Training ${plan.model}`,
      headers: ["Property", "Value"],
      rows: [
        ["Data", `${count(plan.rows)} rows, ${count(plan.tokens)} tokens${cut}`],
        ["Learned", `${count(plan.learnedTokens)} tokens`],
        ["Held out", `${count(plan.heldOutRows)} rows`],
        ["Chat format", plan.renderer],
        ["Steps", `${count(plan.steps)} of ${plan.batchSize} rows`],
        ["Learning rate", `${plan.learningRate.toPrecision(3)}, ${plan.lrSchedule}`],
        ["Adapter", `rank ${plan.rank}`],
        [
          "Estimate",
          `${count(plan.trainedTokens)} tokens, about ${formatSeconds(plan.estimatedSeconds)}`,
        ],
        ["Folder", plan.folder],
      ],
    }),
  });
}

async function trainAndTell(
  context: CommandContext,
  { service }: OpenService,
  settings: Settings & { readonly data: PreparedData },
  totalSteps: number,
  next: { readonly resume: string; readonly evalFile: string },
): Promise<number | void> {
  const { signal } = context;
  const { train } = await import("@tinker-ts/cookbook/supervised");
  const { consoleSink } = await import("tinker-ts/run-log");
  const { renderer, testConversations, conversations } = settings.data;
  const questions = questionsOf(
    testConversations.length > 0 ? testConversations : conversations,
    shownSamples,
  );
  const interview = { renderer: renderer!, questions };
  const before = await askAll(service, interview, { baseModel: settings.model }, signal);
  const sinks = liveSink(context, consoleSink, totalSteps);
  const result = await train({ ...settings, service, signal, sinks });
  if (result.status === "interrupted") return tellInterruption(context, result, next.resume);
  const modelPath = result.checkpoint!.samplerPath!;
  const after = await askAll(service, interview, { modelPath }, signal);
  await tellTrained(context, result, { ...interview, before, after }, result.evaluation, {
    evalFile: next.evalFile,
  });
}
