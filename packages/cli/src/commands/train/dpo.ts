import type {
  PreferenceLoss,
  PreferenceTrainOptions,
  PreparedPreferences,
  UnpairedLoss,
} from "@tinker-ts/cookbook/preference";
import type { Datum } from "tinker-ts";
import { defineCommand, type CommandContext } from "../../command.js";
import { findCheckpoint } from "../../connect/model-source.js";
import { orLocal } from "../../connect/or-local.js";
import { withService, type OpenService } from "../../connect/with-service.js";
import { CliError } from "../../errors/cli-error.js";
import { dataSource } from "../../parse/data-source.js";
import type { ArgumentSpecs, OptionSpecs, OptionValues } from "../../parse/option-spec.js";
import { hasColours } from "../../terminal/style.js";
import { estimateSeconds, formatSeconds } from "../../training/estimate.js";
import { loadModule } from "../../training/load-module.js";
import { rowOptions } from "../../parse/training-options.js";
import { rowSettings } from "../../training/row-settings.js";
import { openRunFolder, runTraining } from "../../training/run-training.js";
import { sequenceOf } from "../../training/samples.js";
import { count, snakeCase, stepsText } from "../../training/texts.js";
import { askAll, printSummary } from "../../training/trained.js";

const options = {
  ...rowOptions,
  loss: {
    type: "string",
    choices: ["dpo", "ipo", "simpo", "kto"],
    default: "dpo",
    description: "Loss; kto takes single completions with a label true or false",
  },
  beta: {
    type: "number",
    min: 0,
    description: "Strength of the loss; by default 0.1, 2 for simpo",
  },
  reference: {
    type: "string",
    placeholder: "PATH",
    values: ["checkpoints", "models"],
    description: "Reference model; by default the weights that training starts from",
  },
  lr: {
    ...rowOptions.lr,
    description: "Peak learning rate; by default a tenth of the one recommended for the model",
  },
} as const satisfies OptionSpecs;

const args = {
  data: {
    description:
      "Comparisons: a JSONL, JSON, CSV or Parquet file, hf:ORG/NAME[:SPLIT], or a module that exports rows",
  },
} as const satisfies ArgumentSpecs;

type Options = OptionValues<typeof options>;
type Settings = Omit<PreferenceTrainOptions, "service" | "data">;

const shownQuestions = 3;

/** `train dpo` */
export const command = defineCommand({
  summary: "Train a model on preferences: chosen answers become more probable than rejected ones.",
  details: [
    "Rows have prompt, chosen and rejected; chosen and rejected as whole conversations; comparison and label; or prompt, completion_a, completion_b and label. With --loss kto also prompt, completion and a label true or false.",
    "A module's default export is a list of rows, or a function that returns one.",
    "Without a server and a key, the engine in this process trains.",
    "Ctrl-C saves and prints the command to resume; --resume continues a killed run from its last checkpoint.",
  ],
  options,
  arguments: args,
  examples: [
    "train dpo pairs.jsonl --model tinker-ts/sprout",
    "train dpo pairs.jsonl --model tinker-ts/sprout --test-size 50 --epochs 2 --output runs/first",
    "train dpo liked.jsonl --model tinker-ts/sprout --loss kto",
    "train dpo pairs.jsonl --model tinker-ts/sprout --dry-run",
  ],
  async run(given, { arguments: { data }, options: chosen }) {
    const context = orLocal(given);
    const { signal } = context;
    const { cwd } = context.terminal;
    const loss = await lossOf(chosen);
    const rows = await rowsOf(data, cwd);
    const settings = {
      ...rowSettings(chosen, cwd),
      reference: chosen.reference,
      recipeName: `train ${chosen.loss}`,
      loadCheckpointPath: await findCheckpoint(chosen.load, cwd),
      loss,
      ...(await openRunFolder(cwd, data, chosen)),
    };
    return withService(context, async (open) => {
      const { service } = open;
      const preference = await import("@tinker-ts/cookbook/preference");
      const unpaired = preference.isUnpaired(loss);
      const inputs = { ...settings, data: rows, service, unpaired, signal };
      const prepared = await preference.preparePreferences(inputs);
      const plan = await makePlan(open, settings, prepared, signal);
      const { renderer, test, dataset } = prepared;
      const shown = test.length > 0 ? test : dataset.rows;
      const prompts = new Map(shown.map(({ prompt }) => [JSON.stringify(prompt), prompt]));
      const questions = [...prompts.values()].slice(0, shownQuestions).map((asked) => ({ asked }));
      const interview = { renderer, questions };
      let before: readonly string[] = [];
      return runTraining(context, {
        words: ["train", "dpo", data],
        specs: options,
        chosen,
        folder: settings.folder,
        plan,
        totalSteps: plan.steps,
        warnings: prepared.warnings,
        metrics: [/^\w+_loss$/, "accuracy", "margin", /^test\//, "learning_rate"],
        showPlan: () => showPlan(context, plan, prepared),
        async train(sinks) {
          before = await askAll(service, interview, { baseModel: settings.model }, signal);
          return preference.train({ ...settings, data: prepared, service, signal, sinks });
        },
        async report(result) {
          const modelPath = result.checkpoint!.samplerPath!;
          const after = await askAll(service, interview, { modelPath }, signal);
          await printSummary(context, result, { ...interview, before, after }, result.evaluation);
        },
      });
    });
  },
});

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
  throw new CliError(`${data} does not export a list of rows.`);
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
  readonly epochs: number;
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
  { report, dataset, test, renderer, batchSize, numEpochs: enough = 1 }: PreparedPreferences,
  signal: AbortSignal,
): Promise<Plan> {
  const { preferenceLoop } = await import("@tinker-ts/cookbook/preference");
  const { model, numEpochs = enough, maxSteps = Infinity, loss } = settings;
  const { learningRate } = preferenceLoop({ ...settings, data: [], service });
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
    epochs: Math.min(numEpochs, Math.ceil(steps / dataset.batchesPerEpoch)),
    batchSize,
    learningRate,
    lrSchedule: String(settings.lrSchedule),
    rank: settings.loraRank!,
    estimatedSeconds: steps * seconds * (needsReference ? 5 / 3 : 4 / 3),
    folder: settings.folder,
  };
}

/** Prints the first comparison in colours, and the plan as a table. */
async function showPlan(
  { output, terminal }: CommandContext,
  plan: Plan,
  { dataset, tokenizer, badRows }: PreparedPreferences,
): Promise<void> {
  const { showExample } = await import("@tinker-ts/cookbook/renderers");
  const colors = hasColours(terminal, "out");
  const show = (datum: Datum): string => showExample(sequenceOf(datum), tokenizer, { colors });
  const { data, desirable } = dataset.rows[0]!;
  const where = colors ? "in green" : "in brackets";
  for (const [index, datum] of data.entries()) {
    const what = desirable[index] ? "chosen" : "rejected";
    output.line(output.style.bold(`First ${what} completion, compared text ${where}:`));
    output.line(`${show(datum)}\n`);
  }
  for (const { place, problem } of badRows) output.note(`Skipped ${place}: ${problem}`);
  const cut = plan.cutRows > 0 ? `; ${plan.cutRows} rows cut` : "";
  const ties = plan.ties > 0 ? `; ${plan.ties} ties left out` : "";
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
        ["Steps", stepsText(plan)],
        ["Learning rate", `${plan.learningRate.toPrecision(3)}, ${plan.lrSchedule}`],
        ["Adapter", `rank ${plan.rank}`],
        ["Estimate", `about ${formatSeconds(plan.estimatedSeconds)}`],
        ["Folder", plan.folder],
      ],
    }),
  });
}
