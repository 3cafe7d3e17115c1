import type { PreparedData, TrainOptions } from "@tinker-ts/cookbook/supervised";
import { defineCommand, type CommandContext } from "../../command.js";
import { findCheckpoint } from "../../connect/model-source.js";
import { orLocal } from "../../connect/or-local.js";
import { withService, type OpenService } from "../../connect/with-service.js";
import { dataSource } from "../../parse/data-source.js";
import type { ArgumentSpecs, OptionSpecs } from "../../parse/option-spec.js";
import { hasColours } from "../../terminal/style.js";
import { estimateSeconds, formatSeconds } from "../../training/estimate.js";
import { rowOptions } from "../../parse/training-options.js";
import { rowSettings } from "../../training/row-settings.js";
import { openRunFolder, runTraining } from "../../training/run-training.js";
import { questionsOf, sequenceOf } from "../../training/samples.js";
import { count, snakeCase, stepsText } from "../../training/texts.js";
import { askAll, printSummary } from "../../training/trained.js";

const options = {
  ...rowOptions,
  warmupSteps: {
    type: "integer",
    min: 0,
    default: 0,
    description: "Steps until the learning rate reaches its peak",
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
    description: "Messages of a row to learn",
  },
} as const satisfies OptionSpecs;

const args = {
  data: {
    description: "Conversations: a JSONL, JSON, CSV or Parquet file, or hf:ORG/NAME[:SPLIT]",
  },
} as const satisfies ArgumentSpecs;

const shownSamples = 3;

/** `train sft` */
export const command = defineCommand({
  summary: "Fine-tune a model on conversations: from a file to saved weights.",
  details: [
    "Rows have messages, ShareGPT's conversations, instruction and output, or prompt and completion.",
    "Without a server and a key, the engine in this process trains.",
    "Ctrl-C saves and prints the command to resume; --resume continues a killed run from its last checkpoint.",
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
    const { signal } = context;
    const { cwd } = context.terminal;
    const settings = {
      ...rowSettings(chosen, cwd),
      warmupSteps: chosen.warmupSteps,
      trainOnWhat: chosen.trainOn,
      recipeName: "train sft",
      loadCheckpointPath: await findCheckpoint(chosen.load, cwd),
      ...(await openRunFolder(cwd, data, chosen)),
    };
    return withService(context, async (open) => {
      const { service } = open;
      const { prepareData, train } = await import("@tinker-ts/cookbook/supervised");
      const rows = dataSource(data, cwd);
      const prepared = await prepareData({ ...settings, data: rows, service, signal });
      const plan = await makePlan(open, settings, prepared, signal);
      const { renderer, testConversations, conversations } = prepared;
      const shown = testConversations.length > 0 ? testConversations : conversations;
      const interview = { renderer: renderer!, questions: questionsOf(shown, shownSamples) };
      let before: readonly string[] = [];
      return runTraining(context, {
        words: ["train", "sft", data],
        specs: options,
        chosen,
        folder: settings.folder,
        plan,
        totalSteps: plan.steps,
        warnings: prepared.warnings,
        metrics: ["train_mean_nll", "test/nll", "learning_rate"],
        showPlan: () => showPlan(context, plan, prepared),
        async train(sinks) {
          before = await askAll(service, interview, { baseModel: settings.model }, signal);
          return train({ ...settings, data: prepared, service, signal, sinks });
        },
        async report(result) {
          const modelPath = result.checkpoint!.samplerPath!;
          const after = await askAll(service, interview, { modelPath }, signal);
          const answers = { ...interview, before, after };
          const evalFile = chosen.eval ?? data;
          await printSummary(context, result, answers, result.evaluation, { evalFile });
        },
      });
    });
  },
});

type Settings = Omit<TrainOptions, "service" | "data">;

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
  readonly epochs: number;
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
  const { completeLoopOptions } = await import("@tinker-ts/cookbook/supervised");
  const { report, renderer, dataset, batchSize, conversations, testConversations } = prepared;
  const { model, maxSteps = Number.POSITIVE_INFINITY } = settings;
  const { numEpochs = prepared.numEpochs ?? 1 } = settings;
  const { learningRate } = completeLoopOptions({ ...settings, service }, { recipeName: "plan" });
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
    epochs: Math.min(numEpochs, Math.ceil(steps / dataset.batchesPerEpoch)),
    batchSize: batchSize!,
    learningRate,
    lrSchedule: String(settings.lrSchedule),
    rank: settings.loraRank!,
    trainedTokens: Math.round((report!.tokens / dataset.batchesPerEpoch) * steps),
    estimatedSeconds: steps * (await estimateSeconds({ service, model, data, signal })),
    folder: settings.folder,
  };
}

/** Prints the first example in colours, and the plan as a table. */
async function showPlan(
  { output, terminal }: CommandContext,
  plan: Plan,
  { dataset, tokenizer, badRows }: PreparedData,
): Promise<void> {
  const { showExample } = await import("@tinker-ts/cookbook/renderers");
  const [first] = await dataset.batch(0, 0);
  const colors = hasColours(terminal, "out");
  output.line(
    output.style.bold(`First example, learned text ${colors ? "in green" : "in brackets"}:`),
  );
  output.line(`${showExample(sequenceOf(first!), tokenizer, { colors })}\n`);
  for (const { place, problem } of badRows) output.note(`Skipped ${place}: ${problem}`);
  const cut = plan.cutRows > 0 ? `; ${plan.cutRows} rows cut` : "";
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
        ["Steps", stepsText(plan)],
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
