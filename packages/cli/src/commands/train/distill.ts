import type {
  Distillation,
  DistillPlan,
  DistillRunOptions,
} from "@tinker-ts/cookbook/distillation";
import type { Renderer } from "@tinker-ts/cookbook/renderers";
import { defineCommand, type CommandContext } from "../../command.js";
import { orLocal } from "../../connect/or-local.js";
import { withService, type OpenService } from "../../connect/with-service.js";
import type { ArgumentSpecs, OptionSpecs, OptionValues } from "../../parse/option-spec.js";
import { estimateSeconds, formatSeconds } from "../../training/estimate.js";
import { tellInterruption } from "../../training/interruption.js";
import { liveSink } from "../../training/live-sink.js";
import { loadModule, refuseModule } from "../../training/load-module.js";
import { moduleOptions, readRate, resumeLine, runFolder } from "../../parse/training-options.js";
import { checkRunFolder } from "../../training/run-folder.js";
import { count, oneLine, snakeCase } from "../../training/texts.js";
import { askAll, tellTrained, type Interview } from "../../training/trained.js";

const options = {
  ...moduleOptions,
  model: { ...moduleOptions.model, description: "The student" },
  lr: {
    type: "string",
    placeholder: "RATE",
    description: "The learning rate; by default the module's, else that of its kind",
  },
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
/** An answer that goes on after so many tokens is taken to go on to its end. */
const probedTokens = 64;

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
    const folder = runFolder(cwd, module, chosen);
    const learningRate = chosen.lr === undefined ? undefined : readRate(chosen.lr);
    const found = await loadModule(module, cwd, {
      name: "distill",
      example:
        "export default ({ sampling }) => ({ datasets: [{ prompts: […], teacher: sampling }] })",
    });
    await checkRunFolder(folder, chosen);
    return withService(context, async (open) => {
      const { distillation, renderer } = await openDistillation(context, open, found, chosen);
      const { service } = open;
      const { signal } = context;
      const settings = {
        service,
        model: chosen.model,
        folder,
        learningRate,
        loraRank: chosen.rank,
        maxSteps: chosen.maxSteps,
        saveEvery: chosen.saveEvery,
        seed: chosen.seed,
        loadCheckpointPath: chosen.load,
        signal,
      };
      const questions = distillation.questions.slice(0, shownQuestions).map((asked) => ({ asked }));
      const interview = { renderer, questions };
      const before = await askAll(service, interview, { baseModel: chosen.model }, signal);
      const plan = await makePlan(distillation, renderer, settings);
      if (!context.output.isJson) await showPlan(context, plan, { ...interview, before });
      if (chosen.dryRun) {
        if (context.output.isJson) context.output.json(snakeCase(plan));
        return undefined;
      }
      const { consoleSink } = await import("tinker-ts/run-log");
      const sinks = liveSink(context, consoleSink, plan.steps);
      const result = await distillation.run({ ...settings, sinks });
      if (result.status === "interrupted") {
        const words = ["train", "distill", module];
        const resume = resumeLine(words, options, chosen, { cwd, folder });
        return tellInterruption(context, result, resume);
      }
      const modelPath = result.checkpoint!.samplerPath!;
      const after = await askAll(service, interview, { modelPath }, signal);
      await tellTrained(context, result, { ...interview, before, after }, {});
      return undefined;
    });
  },
});

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
  const distillation = await readDistillModule(found, made).catch(refuseModule);
  return { distillation, renderer };
}

/** What will be distilled. */
interface Plan {
  readonly model: string;
  readonly kind: Distillation["kind"];
  readonly questions: number | null;
  readonly renderer: string;
  readonly steps: number;
  readonly sequencesPerStep: number;
  readonly learningRate: number;
  readonly rank: number;
  readonly estimatedSeconds: number;
  readonly folder: string;
}

async function makePlan(
  distillation: Distillation,
  renderer: Renderer,
  settings: DistillRunOptions & { readonly signal: AbortSignal },
): Promise<Plan> {
  const { recommendedLearningRate } = await import("@tinker-ts/cookbook/hyperparameters");
  const { model, folder } = settings;
  const planned = await distillation.plan(settings);
  const { steps, sequencesPerStep, learningRate, loraRank } = planned;
  return {
    model,
    kind: distillation.kind,
    questions: distillation.size ?? null,
    renderer: renderer.name,
    steps,
    sequencesPerStep,
    learningRate: learningRate === "auto" ? recommendedLearningRate(model) : learningRate,
    rank: loraRank,
    estimatedSeconds: await estimate(planned, settings),
    folder,
  };
}

/** By how long the student takes to read the first data, or to answer the first question. */
async function estimate(
  { steps, sequencesPerStep, answersBefore, data, sampled }: DistillPlan,
  { service, model, signal }: DistillRunOptions & { readonly signal: AbortSignal },
): Promise<number> {
  // Besides the pass with gradients there is one of the teacher's.
  if (data) return steps * (await estimateSeconds({ service, model, data, signal })) * (4 / 3);
  if (!sampled) return 0;
  const { rolloutGroup, samplingPolicy } = await import("@tinker-ts/cookbook/rl");
  const { findContextLength } = await import("@tinker-ts/cookbook/runs");
  const contextWindow = await findContextLength({ service, model, signal });
  const sampling = await service.createSamplingClient({ baseModel: model, signal });
  const started = performance.now();
  const maxTokens = Math.min(probedTokens, sampled.maxTokens);
  const policy = samplingPolicy(sampling, { maxTokens, contextWindow });
  const { trajectories } = await rolloutGroup(policy, sampled.group, { signal });
  const cut = trajectories.filter(({ stopReason }) => stopReason === "max_tokens");
  const whole = sampled.maxTokens / maxTokens;
  const longer = 1 + (cut.length / trajectories.length) * (whole - 1);
  const secondsEach = ((performance.now() - started) / 1000 / trajectories.length) * longer;
  // Answers are read by the teacher and trained, which takes about as long as sampling them.
  const perSequence = answersBefore > 0 ? 1 : 2;
  return secondsEach * (answersBefore + steps * sequencesPerStep * perSequence);
}

/** What is distilled, and how the student answers now. */
async function showPlan(
  { output }: CommandContext,
  plan: Plan,
  { questions, before }: Interview & { readonly before: readonly string[] },
): Promise<void> {
  const { textOf } = await import("@tinker-ts/cookbook/renderers");
  if (questions.length > 0) output.line(output.style.bold("How the student answers now:"));
  for (const [index, { asked }] of questions.entries()) {
    output.line(`  ${oneLine(textOf(asked.at(-1)!))}\n  > ${oneLine(before[index]!)}`);
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
        ["Steps", `${count(plan.steps)} of ${plan.sequencesPerStep} sequences`],
        ["Learning rate", plan.learningRate.toPrecision(3)],
        ["Adapter", `rank ${plan.rank}`],
        ["Estimate", `about ${formatSeconds(plan.estimatedSeconds)}`],
        ["Folder", plan.folder],
      ],
    }),
  });
}
