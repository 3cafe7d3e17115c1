import path from "node:path";
import type { Distillation } from "@tinker-ts/cookbook/distillation";
import type { Renderer } from "@tinker-ts/cookbook/renderers";
import { defineCommand, type CommandContext } from "../../command.js";
import { orLocal } from "../../connect/or-local.js";
import { withService, type OpenService } from "../../connect/with-service.js";
import { CliError } from "../../errors/cli-error.js";
import { commandLine } from "../../parse/command-line.js";
import type { ArgumentSpecs, OptionSpecs, OptionValues } from "../../parse/option-spec.js";
import { tellInterruption } from "../../training/interruption.js";
import { liveSink } from "../../training/live-sink.js";
import { loadModule } from "../../training/load-module.js";
import { checkRunFolder } from "../../training/run-folder.js";
import { oneLine, snakeCase } from "../../training/texts.js";
import { askAll, tellTrained, type Interview } from "../../training/trained.js";

const options = {
  model: {
    type: "string",
    short: "m",
    placeholder: "NAME",
    values: ["models", "files"],
    required: true,
    description: "The student",
  },
  renderer: {
    type: "string",
    placeholder: "NAME",
    description: "The chat format, if not the model's recommended one",
  },
  lr: {
    type: "string",
    placeholder: "RATE",
    description: "The learning rate; by default the module's, else that of its kind",
  },
  rank: { type: "integer", min: 1, description: "The rank of the adapter; 32 by default" },
  maxSteps: { type: "integer", min: 1, description: "Ends after so many steps" },
  saveEvery: { type: "integer", min: 0, description: "Steps between checkpoints; 20 by default" },
  seed: {
    type: "integer",
    default: 0,
    description: "Decides what is sampled and the first weights",
  },
  load: {
    type: "string",
    placeholder: "PATH",
    values: ["checkpoints"],
    description: "Begins with the weights of a checkpoint",
  },
  output: {
    type: "string",
    short: "o",
    placeholder: "DIR",
    description: "The run's folder; runs/NAME_OF_MODULE by default",
  },
  resume: { type: "flag", description: "Goes on with the run in that folder" },
  dryRun: {
    type: "flag",
    description: "Shows what is distilled and how the student answers now, and trains nothing",
  },
} as const satisfies OptionSpecs;

const args = {
  module: { description: "A module (.js, .mjs, .ts) that exports the teacher and what it teaches" },
} as const satisfies ArgumentSpecs;

type Options = OptionValues<typeof options>;

const shownQuestions = 3;

const kinds: Readonly<Record<Distillation["kind"], string>> = {
  "on-policy": "on-policy: the teacher judges every token of the student's answers",
  "off-policy": "off-policy: the teacher's distributions in given conversations",
  sdft: "from demonstrations that only the teacher sees",
  prompt: "an instruction that only the teacher sees",
};

/** `train distill` */
export const command = defineCommand({
  summary: "Trains a student on what a teacher knows: a module says who teaches what.",
  details: [
    "The module's default export is a function that gets { service, sampling, renderer, tokenizer, seed, … } and returns one of: { datasets: [{ prompts, teacher }] }; { teacher, data }; { demonstrations }; { instruction, queries }; with settings of its own where it has any. What is given here wins.",
    "Without a server and a key, the engine in this process trains.",
    "Ctrl-C saves and says how to go on; a run that was killed goes on from its last checkpoint with --resume.",
  ],
  options,
  arguments: args,
  examples: [
    "train distill teacher.mjs --model tinker-ts/sprout",
    "train distill teacher.mjs --model tinker-ts/sprout --lr 1e-3 --max-steps 20",
    "train distill teacher.mjs --model tinker-ts/sprout --dry-run",
  ],
  async run(given, { arguments: { module }, options: chosen }) {
    const context = orLocal(given);
    const { cwd } = context.terminal;
    const folder = path.resolve(cwd, chosen.output ?? path.join("runs", path.parse(module).name));
    const learningRate = rateOf(chosen);
    const found = await loadModule(module, cwd, {
      name: "distill",
      example:
        "export default ({ sampling }) => ({ datasets: [{ prompts: […], teacher: sampling }] })",
    });
    await checkRunFolder(folder, chosen);
    return withService(context, async (open) => {
      const { distillation, renderer } = await openDistillation(context, open, found, chosen);
      const { signal } = context;
      const questions = distillation.questions.slice(0, shownQuestions);
      const interview = { renderer, questions };
      const before = await askAll(open.service, interview, { baseModel: chosen.model }, signal);
      const plan = {
        model: chosen.model,
        kind: distillation.kind,
        questions: distillation.size ?? null,
        renderer: renderer.name,
        learningRate: learningRate ?? null,
        folder,
      };
      if (!context.output.isJson) await showPlan(context, plan, { ...interview, before });
      if (chosen.dryRun) {
        if (context.output.isJson) context.output.json(snakeCase(plan));
        return undefined;
      }
      const { consoleSink } = await import("tinker-ts/run-log");
      const result = await distillation.run({
        service: open.service,
        model: chosen.model,
        folder,
        learningRate,
        loraRank: chosen.rank,
        maxSteps: chosen.maxSteps,
        saveEvery: chosen.saveEvery,
        seed: chosen.seed,
        loadCheckpointPath: chosen.load,
        sinks: liveSink(context, consoleSink, chosen.maxSteps),
        signal,
      });
      if (result.status === "interrupted") {
        const output = chosen.output ?? path.relative(cwd, folder);
        const line = { ...chosen, output, resume: true };
        const resume = commandLine(["train", "distill", module], options, line);
        return tellInterruption(context, result, resume);
      }
      const modelPath = result.checkpoint!.samplerPath!;
      const after = await askAll(open.service, interview, { modelPath }, signal);
      await tellTrained(context, result, { ...interview, before, after }, {});
      return undefined;
    });
  },
});

function rateOf({ lr }: Options): number | undefined {
  if (lr === undefined) return undefined;
  const rate = Number(lr);
  if (rate > 0) return rate;
  throw new CliError(`--lr: '${lr}' is not a positive number.`);
}

async function openDistillation(
  { signal }: CommandContext,
  { service }: OpenService,
  found: unknown,
  chosen: Options,
): Promise<{ readonly distillation: Distillation; readonly renderer: Renderer }> {
  const { chooseRenderer } = await import("@tinker-ts/cookbook/runs");
  const { readDistillModule } = await import("@tinker-ts/cookbook/distillation");
  const { model, seed } = chosen;
  const sampling = await service.createSamplingClient({ baseModel: model, signal });
  const tokenizer = await sampling.getTokenizer();
  const checkpointPath = chosen.load;
  const renderer = await chooseRenderer({ ...chosen, tokenizer, service, signal, checkpointPath });
  const made = { service, model, sampling, renderer, tokenizer, seed, signal };
  const distillation = await readDistillModule(found, made).catch((cause: unknown) => {
    const text = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(`The module cannot be used: ${text}`, undefined, { cause });
  });
  return { distillation, renderer };
}

/** What is distilled, and how the student answers now. */
async function showPlan(
  { output }: CommandContext,
  plan: {
    readonly model: string;
    readonly kind: Distillation["kind"];
    readonly questions: number | null;
    readonly renderer: string;
    readonly learningRate: number | null;
    readonly folder: string;
  },
  { questions, before }: Interview & { readonly before: readonly string[] },
): Promise<void> {
  const { textOf } = await import("@tinker-ts/cookbook/renderers");
  if (questions.length > 0) output.line(output.style.bold("How the student answers now:"));
  for (const [index, question] of questions.entries()) {
    output.line(`  ${oneLine(textOf(question.at(-1)!))}\n  > ${oneLine(before[index]!)}`);
  }
  output.line("");
  output.result({
    json: () => snakeCase(plan),
    table: () => ({
      title: `Teaching ${plan.model}`,
      headers: ["Property", "Value"],
      rows: [
        ["Kind", kinds[plan.kind]],
        ["Questions", plan.questions === null ? "in the data" : String(plan.questions)],
        ["Chat format", plan.renderer],
        ["Learning rate", plan.learningRate === null ? "the module's" : String(plan.learningRate)],
        ["Folder", plan.folder],
      ],
    }),
  });
}
