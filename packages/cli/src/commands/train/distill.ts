import type {
  Distillation,
  DistillPlan,
  DistillRunOptions,
} from "@tinker-ts/cookbook/distillation";
import type { Renderer } from "@tinker-ts/cookbook/renderers";
import { defineCommand, type CommandContext } from "../../command.js";
import { findCheckpoint } from "../../connect/model-source.js";
import { orLocal } from "../../connect/or-local.js";
import { withService, type OpenService } from "../../connect/with-service.js";
import type { ArgumentSpecs, OptionSpecs, OptionValues } from "../../parse/option-spec.js";
import { estimateSeconds, formatSeconds } from "../../training/estimate.js";
import { loadModule, refuseModule } from "../../training/load-module.js";
import { moduleOptions, readRate } from "../../parse/training-options.js";
import { openRunFolder, runTraining } from "../../training/run-training.js";
import { count, oneLine, plural, snakeCase } from "../../training/texts.js";
import { askAll, printSummary, type Interview } from "../../training/trained.js";

const specs = {
  ...moduleOptions,
  model: { ...moduleOptions.model, description: "Student model" },
  lr: {
    type: "string",
    placeholder: "RATE",
    description: "Learning rate; by default the module's, else one that suits the model",
  },
} as const satisfies OptionSpecs;

const args = {
  module: { description: "Module (.js, .mjs, .ts) that exports the teacher and the prompts" },
} as const satisfies ArgumentSpecs;

type Options = OptionValues<typeof specs>;

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
  summary: "Train a student model on a teacher; a module names the teacher and the prompts.",
  details: [
    "The module's default export is a function that gets { service, sampling, renderer, tokenizer, seed, … } and returns one of: { datasets: [{ prompts, teacher }] }; { teacher, data }; { demonstrations }; { instruction, queries }; with further settings. Options of the command take precedence.",
    "Without a server and a key, the engine in this process trains.",
    "Ctrl-C saves and prints the command to resume; --resume continues a killed run from its last checkpoint.",
  ],
  options: specs,
  arguments: args,
  examples: [
    "train distill teacher.mjs --model tinker-ts/sprout",
    "train distill teacher.mjs --model tinker-ts/sprout --lr 1e-3 --max-steps 20",
    "train distill teacher.mjs --model tinker-ts/sprout --dry-run",
  ],
  async run(given, { arguments: { module }, options }) {
    const context = orLocal(given);
    const { signal } = context;
    const { cwd } = context.terminal;
    const chosen = { ...options, load: await findCheckpoint(options.load, cwd) };
    const learningRate = chosen.lr === undefined ? undefined : readRate(chosen.lr);
    const found = await loadModule(module, cwd, {
      name: "distill",
      example:
        "export default ({ sampling }) => ({ datasets: [{ prompts: […], teacher: sampling }] })",
    });
    const place = await openRunFolder(cwd, module, chosen);
    return withService(context, async (open) => {
      const { distillation, renderer } = await openDistillation(context, open, found, chosen);
      const { service } = open;
      const settings = {
        service,
        model: chosen.model,
        ...place,
        learningRate,
        loraRank: chosen.rank,
        maxSteps: chosen.maxSteps,
        maxFailedSteps: chosen.maxFailedSteps,
        saveEvery: chosen.saveEvery,
        seed: chosen.seed,
        loadCheckpointPath: chosen.load,
        signal,
      };
      const questions = distillation.questions.slice(0, shownQuestions).map((asked) => ({ asked }));
      const interview = { renderer, questions };
      const before = await askAll(service, interview, { baseModel: chosen.model }, signal);
      const plan = await makePlan(distillation, renderer, settings);
      return runTraining(context, {
        words: ["train", "distill", module],
        specs,
        chosen,
        folder: place.folder,
        plan,
        totalSteps: plan.steps,
        metrics: [/^teacher_kl/, "forward_kl", /^sdft\/.*kl/, "train_mean_nll", "learning_rate"],
        showPlan: () => showPlan(context, plan, { ...interview, before }),
        train: (sinks) => distillation.run({ ...settings, sinks }),
        async report(result) {
          const modelPath = result.checkpoint!.samplerPath!;
          const after = await askAll(service, interview, { modelPath }, signal);
          await printSummary(context, result, { ...interview, before, after }, {});
        },
      });
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

/** Prints how the student answers now, and the plan as a table. */
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
        ["Steps", `${count(plan.steps)} of ${plural(plan.sequencesPerStep, "sequence")}`],
        ["Learning rate", plan.learningRate.toPrecision(3)],
        ["Adapter", `rank ${plan.rank}`],
        ["Estimate", `about ${formatSeconds(plan.estimatedSeconds)}`],
        ["Folder", plan.folder],
      ],
    }),
  });
}
