import type {
  PreferenceLoss,
  PreferenceTrainOptions,
  PreparedPreferences,
  UnpairedLoss,
} from "@tinker-ts/cookbook/preference";
import type { Datum } from "tinker-ts";
import { defineCommand, type CommandContext } from "../../command.js";
import { orLocal } from "../../connect/or-local.js";
import { withService, type OpenService } from "../../connect/with-service.js";
import { CliError } from "../../errors/cli-error.js";
import { dataSource } from "../../parse/data-source.js";
import type { ArgumentSpecs, OptionSpecs, OptionValues } from "../../parse/option-spec.js";
import { hasColours } from "../../terminal/style.js";
import { estimateSeconds, formatSeconds } from "../../training/estimate.js";
import { tellInterruption } from "../../training/interruption.js";
import { liveSink } from "../../training/live-sink.js";
import { loadModule } from "../../training/load-module.js";
import { readRate, resumeLine, rowOptions, runFolder } from "../../parse/training-options.js";
import { checkRunFolder } from "../../training/run-folder.js";
import { sequenceOf } from "../../training/samples.js";
import { count, snakeCase } from "../../training/texts.js";
import { askAll, tellTrained } from "../../training/trained.js";

const options = {
  ...rowOptions,
  loss: {
    type: "string",
    choices: ["dpo", "ipo", "simpo", "kto"],
    default: "dpo",
    description: "What is made small; kto takes single completions that were liked or not",
  },
  beta: {
    type: "number",
    min: 0,
    description: "The strength of the loss; 0.1 by default, 2 of simpo",
  },
  reference: {
    type: "string",
    placeholder: "PATH",
    values: ["checkpoints", "models"],
    description: "The model to compare with; by default the one that training begins with",
  },
  eval: {
    type: "string",
    placeholder: "FILE",
    description: "Comparisons to judge by; they are not trained",
  },
  testSize: {
    type: "integer",
    min: 1,
    description: "Takes this many comparisons out of the data instead",
  },
  lr: {
    type: "string",
    placeholder: "RATE",
    default: "1e-5",
    description: "The highest learning rate; auto takes the model's recommended one",
  },
  batchSize: {
    type: "integer",
    min: 1,
    description: "Comparisons per step; by default such that there are 100 steps",
  },
} as const satisfies OptionSpecs;

const args = {
  data: {
    description:
      "Comparisons: a JSONL, JSON, CSV or Parquet file, hf:ORG/NAME[:SPLIT], or a module that exports rows",
  },
} as const satisfies ArgumentSpecs;

type Options = OptionValues<typeof options>;
type Settings = Omit<PreferenceTrainOptions, "service">;

const shownQuestions = 3;

/** `train dpo` */
export const command = defineCommand({
  summary: "Trains a model on preferences: chosen answers become more probable than rejected ones.",
  details: [
    "Rows may have prompt, chosen and rejected; chosen and rejected as whole conversations; comparison and label; or prompt, completion_a, completion_b and label. With --loss kto also prompt, completion and a label true or false.",
    "A module's default export is a list of rows, or a function that returns one.",
    "Without a server and a key, the engine in this process trains.",
    "Ctrl-C saves and says how to go on; a run that was killed goes on from its last checkpoint with --resume.",
  ],
  options,
  arguments: args,
  examples: [
    "train dpo pairs.jsonl --model tinker-ts/sprout --lr 5e-4",
    "train dpo pairs.jsonl --model tinker-ts/sprout --test-size 50 --epochs 2 --output runs/first",
    "train dpo liked.jsonl --model tinker-ts/sprout --loss kto",
    "train dpo pairs.jsonl --model tinker-ts/sprout --dry-run",
  ],
  async run(given, { arguments: { data }, options: chosen }) {
    const context = orLocal(given);
    const { cwd } = context.terminal;
    const folder = runFolder(cwd, data, chosen);
    const loss = await lossOf(chosen);
    const rows = await rowsOf(data, cwd);
    await checkRunFolder(folder, chosen);
    return withService(context, async (open) => {
      const { isUnpaired, preparePreferences } = await import("@tinker-ts/cookbook/preference");
      const settings = { ...toSettings(chosen, cwd), data: rows, loss, folder };
      const { service } = open;
      const { signal } = context;
      const unpaired = isUnpaired(loss);
      const prepared = await preparePreferences({ ...settings, service, unpaired, signal });
      const plan = await makePlan(open, settings, prepared, signal);
      if (!context.output.isJson) await showPlan(context, plan, prepared);
      if (chosen.dryRun) {
        if (context.output.isJson) context.output.json(snakeCase(plan));
        return undefined;
      }
      const resume = resumeLine(["train", "dpo", data], options, chosen, { cwd, folder });
      return trainAndTell(context, open, { ...settings, data: prepared }, plan.steps, resume);
    });
  },
});

function toSettings(chosen: Options, cwd: string): Omit<Settings, "data" | "folder" | "loss"> {
  return {
    model: chosen.model,
    reference: chosen.reference,
    evalData: chosen.eval === undefined ? undefined : dataSource(chosen.eval, cwd),
    testSize: chosen.testSize,
    renderer: chosen.renderer,
    learningRate: readRate(chosen.lr, { auto: true }),
    lrSchedule: chosen.lrSchedule,
    loraRank: chosen.rank,
    numEpochs: chosen.epochs,
    batchSize: chosen.batchSize,
    maxSteps: chosen.maxSteps,
    maxLength: chosen.maxLength,
    evalEvery: chosen.evalEvery,
    saveEvery: chosen.saveEvery,
    seed: chosen.seed,
    loadCheckpointPath: chosen.load,
    badRows: chosen.skipBadRows ? "skip" : "fail",
    recipeName: `train ${chosen.loss}`,
  };
}

async function lossOf({ loss, beta }: Options): Promise<PreferenceLoss | UnpairedLoss> {
  const losses = await import("@tinker-ts/cookbook/preference");
  if (beta === 0) throw new CliError("--beta: must be above 0.");
  return losses[loss](beta === undefined ? {} : { beta });
}

/** A file by its name, or what a module exports. */
async function rowsOf(data: string, cwd: string): Promise<string | readonly unknown[]> {
  if (!/\.[cm]?[jt]s$/.test(data)) return dataSource(data, cwd);
  const found = await loadModule(data, cwd, {
    name: "pairs",
    example: "export default [{ prompt, chosen, rejected }, …]",
  });
  const rows: unknown = typeof found === "function" ? await found() : found;
  if (Array.isArray(rows)) return rows;
  throw new CliError(`${data} exports no list of rows.`);
}

/** What will be trained. */
interface Plan {
  readonly model: string;
  readonly loss: string;
  readonly beta: number;
  readonly rows: number;
  readonly ties: number;
  readonly tokens: number;
  readonly learnedTokens: number;
  readonly cutRows: number;
  readonly heldOutRows: number;
  readonly renderer: string;
  readonly reference: string | null;
  readonly steps: number;
  readonly batchSize: number;
  readonly learningRate: number;
  readonly lrSchedule: string;
  readonly rank: number;
  readonly estimatedSeconds: number;
  readonly folder: string;
}

async function makePlan(
  { service }: OpenService,
  settings: Settings,
  { report, dataset, test, renderer, batchSize }: PreparedPreferences,
  signal: AbortSignal,
): Promise<Plan> {
  const { recommendedLearningRate } = await import("@tinker-ts/cookbook/hyperparameters");
  const { model, numEpochs = 1, maxSteps = Infinity, learningRate, loss } = settings;
  const steps = Math.min(dataset.batchesPerEpoch * numEpochs, maxSteps);
  const data = dataset.batch(0, 0);
  const { needsReference } = loss!;
  // Besides the pass with gradients there is one without, and once per epoch the reference's.
  const seconds = await estimateSeconds({ service, model, data, signal });
  return {
    model,
    loss: loss!.name,
    beta: loss!.beta,
    rows: report.rows,
    ties: report.ties,
    tokens: report.tokens,
    learnedTokens: report.trainedTokens,
    cutRows: report.truncatedRows,
    heldOutRows: test.length,
    renderer: renderer.name,
    reference: needsReference ? (settings.reference ?? settings.loadCheckpointPath ?? model) : null,
    steps,
    batchSize,
    learningRate: learningRate === "auto" ? recommendedLearningRate(model) : learningRate!,
    lrSchedule: String(settings.lrSchedule),
    rank: settings.loraRank!,
    estimatedSeconds: steps * seconds * (needsReference ? 5 / 3 : 4 / 3),
    folder: settings.folder,
  };
}

/** The first comparison in colours, and how much there is. */
async function showPlan(
  { output, terminal }: CommandContext,
  plan: Plan,
  { dataset, tokenizer, badRows }: PreparedPreferences,
): Promise<void> {
  const { showExample } = await import("@tinker-ts/cookbook/renderers");
  const colors = hasColours(terminal, "out");
  const show = (datum: Datum): string => showExample(sequenceOf(datum), tokenizer, { colors });
  const { data, desirable } = dataset.rows[0]!;
  const where = colors ? "green" : "in brackets";
  for (const [index, datum] of data.entries()) {
    const what = desirable[index] ? "chosen" : "rejected";
    output.line(output.style.bold(`The first that is ${what}; what is compared is ${where}:`));
    output.line(`${show(datum)}\n`);
  }
  for (const { place, problem } of badRows) output.note(`Left out ${place}: ${problem}`);
  const cut = plan.cutRows > 0 ? `; ${plan.cutRows} rows are cut` : "";
  const ties = plan.ties > 0 ? `; ${plan.ties} ties are left out` : "";
  output.result({
    json: () => snakeCase(plan),
    table: () => ({
      title: `Training ${plan.model} on preferences`,
      headers: ["Property", "Value"],
      rows: [
        ["Data", `${count(plan.rows)} rows, ${count(plan.tokens)} tokens${cut}${ties}`],
        ["Compared", `${count(plan.learnedTokens)} tokens`],
        ["Held out", `${count(plan.heldOutRows)} rows`],
        ["Loss", `${plan.loss}, beta ${plan.beta}`],
        ["Reference", plan.reference ?? "none"],
        ["Chat format", plan.renderer],
        ["Steps", `${count(plan.steps)} of ${plan.batchSize} rows`],
        ["Learning rate", `${plan.learningRate.toPrecision(3)}, ${plan.lrSchedule}`],
        ["Adapter", `rank ${plan.rank}`],
        ["Estimate", `about ${formatSeconds(plan.estimatedSeconds)}`],
        ["Folder", plan.folder],
      ],
    }),
  });
}

async function trainAndTell(
  context: CommandContext,
  open: OpenService,
  settings: Settings & { readonly data: PreparedPreferences },
  totalSteps: number,
  resume: string,
): Promise<number | void> {
  const { signal } = context;
  const { train } = await import("@tinker-ts/cookbook/preference");
  const { consoleSink } = await import("tinker-ts/run-log");
  const { renderer, test, dataset } = settings.data;
  const rows = test.length > 0 ? test : dataset.rows;
  const prompts = new Map(rows.map(({ prompt }) => [JSON.stringify(prompt), prompt]));
  const questions = [...prompts.values()].slice(0, shownQuestions).map((asked) => ({ asked }));
  const interview = { renderer, questions };
  const before = await askAll(open.service, interview, { baseModel: settings.model }, signal);
  const sinks = liveSink(context, consoleSink, totalSteps);
  const result = await train({ ...settings, service: open.service, signal, sinks });
  if (result.status === "interrupted") return tellInterruption(context, result, resume);
  const modelPath = result.checkpoint!.samplerPath!;
  const after = await askAll(open.service, interview, { modelPath }, signal);
  await tellTrained(context, result, { ...interview, before, after }, result.evaluation);
}
