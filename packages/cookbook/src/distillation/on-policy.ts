import { ArgumentError, ModelInput, type SamplingClient } from "tinker-ts";
import { asMessages, type Message, type Renderer } from "../renderers/index.js";
import {
  fullSequence,
  groupDataset,
  groupOf,
  messageEnvironment,
  penalizeTeacherDistance,
  train,
  type DataAdjuster,
  type EnvironmentGroup,
  type PenaltyOptions,
  type PolicyDatum,
  type RlDataset,
  type RlTrainOptions,
} from "../rl/index.js";
import { chooseRenderer, type RunResult } from "../runs/index.js";
import { toTeacher, type Teacher } from "./teacher.js";

/** How a student follows a teacher. */
export interface TeacherOptions extends Partial<PenaltyOptions> {
  /**
   * Strength.
   * @default 1
   */
  readonly coefficient?: number;
  /**
   * What the teacher reads in place of a prompt of the student, for instance with an instruction in front.
   * @default the same prompt
   */
  readonly promptOf?: ((studentPrompt: ModelInput) => ModelInput) | undefined;
}

/**
 * Makes a teacher's opinion the whole of what is learned: the student samples, and every token is worth as
 * much as it was more probable to the teacher than to the student. This is the gradient of KL(student, teacher)
 * at the places the student goes to. Both must share tokenizer and chat format. Goes into `adjusters` of the
 * reinforcement loop, with groups whose rewards are all 0 (`promptGroup`); the metric is `teacher_kl`.
 */
export function teacherDistance(
  teacher: SamplingClient | Teacher,
  options: TeacherOptions = {},
): DataAdjuster {
  return async (data, _groups, { signal }) => {
    const teachers = await Promise.all(
      data.map((datum) => teacherLogprobs(toTeacher(teacher), datum, { ...options, signal })),
    );
    return penalizeTeacherDistance(data, teachers, { coefficient: 1, ...options });
  };
}

/** What a teacher says of the tokens of a datum; 0 where nothing was sampled. */
async function teacherLogprobs(
  teacher: Teacher,
  datum: PolicyDatum,
  { promptOf, signal }: Pick<TeacherOptions, "promptOf"> & { signal?: AbortSignal | undefined },
): Promise<Float32Array> {
  const { sequence, promptLength, start } = teacherView(datum, promptOf);
  const logprobs = await teacher.logprobs(sequence, { signal });
  if (logprobs.length !== sequence.length) {
    throw new ArgumentError(
      "teacher",
      `must return one value per token (${sequence.length}), got ${logprobs.length}`,
    );
  }
  return Float32Array.from(datum.targets, (_, at) =>
    at < start ? 0 : (logprobs[promptLength + at - start] ?? 0),
  );
}

/** A datum as the teacher reads it: another prompt, then everything from the first sampled token on. */
export function teacherView(
  datum: Pick<PolicyDatum, "input" | "targets" | "mask">,
  promptOf: TeacherOptions["promptOf"] = (prompt) => prompt,
): {
  readonly sequence: ModelInput;
  readonly promptLength: number;
  /** The place of the first sampled token among the targets. */
  readonly start: number;
} {
  const whole = fullSequence(datum);
  const start = datum.mask.indexOf(1);
  const tokens = whole.chunks.every(({ type }) => type === "encoded_text")
    ? whole.toInts()
    : undefined;
  // With pictures the teacher reads what the student read.
  if (!tokens) return { sequence: whole, promptLength: start + 1, start };
  const prompt = promptOf(ModelInput.fromInts(tokens.slice(0, start + 1)));
  const sequence = ModelInput.fromInts([...prompt.toInts(), ...tokens.slice(start + 1)]);
  return { sequence, promptLength: prompt.length, start };
}

/** How a prompt is given to the student. */
export interface PromptGroupOptions {
  /** The model's chat format. */
  readonly renderer: Renderer;
  /** Answers per prompt. */
  readonly size: number;
  /** Names for metrics, for instance the data set. */
  readonly tags?: readonly string[] | undefined;
}

/** Answers to one prompt that earn nothing by themselves. */
export function promptGroup(
  prompt: string | readonly Message[],
  { renderer, size, tags }: PromptGroupOptions,
): EnvironmentGroup {
  const messages = asMessages(prompt);
  const make = () =>
    messageEnvironment(
      { start: () => messages, reply: () => ({ reward: 0 }) },
      // An answer that was cut off or cannot be read is scored by the teacher like any other.
      { renderer, overflowReward: 0, parseErrors: { reward: 0 } },
    );
  return groupOf({ size, tags, sharesPrompt: true, make });
}

/** Prompts, and who knows the answers. */
export interface TeacherDataset {
  /** What is answered. */
  readonly prompts: readonly (string | readonly Message[])[];
  /** Who knows better. */
  readonly teacher: SamplingClient | Teacher;
  /** Prompts per step. @default as many as there are, up to 32 */
  readonly groupsPerBatch?: number | undefined;
  /**
   * What the teacher is asked in place of a prompt, for instance with an instruction in front.
   * @default the same messages
   */
  readonly teacherMessages?: ((prompt: readonly Message[]) => readonly Message[]) | undefined;
}

/** How a student learns from its own answers, by what a teacher says of them. */
export interface OnPolicyOptions
  extends
    Omit<RlTrainOptions, "dataset" | "learningRate" | "maxTokens" | "advantages" | "adjusters">,
    Pick<TeacherOptions, "coefficient" | "discount"> {
  /** Where prompts come from; with several, every step has some of each. */
  readonly datasets: readonly TeacherDataset[];
  /** The chat format: a renderer or its name. @default the one recommended for the model */
  readonly renderer?: Renderer | string | undefined;
  /** Answers per prompt. @default 4 */
  readonly groupSize?: number | undefined;
  /** How often the prompts are gone through. @default 1 */
  readonly numEpochs?: number | undefined;
  /** Most tokens of an answer. @default 1024 */
  readonly maxTokens?: number | undefined;
  /** Prompts that are longer are refused. @default 1024 */
  readonly maxPromptTokens?: number | undefined;
  /** The rate of every update. @default 1e-4 */
  readonly learningRate?: number | undefined;
}

/**
 * On-policy distillation: the student answers, the teacher says of every token how probable it would have been
 * to it, and the student comes nearer (reverse KL). `teacher_kl` is the distance per token, with several data
 * sets also `teacher_kl/dataset_I`. A folder that holds a run is gone on with, exactly where it was.
 */
export async function trainOnPolicy(options: OnPolicyOptions): Promise<RunResult> {
  return train(await onPolicyRun(options));
}

/** On-policy distillation as a run of the reinforcement loop. */
export async function onPolicyRun(options: OnPolicyOptions): Promise<RlTrainOptions> {
  const { service, model, datasets, signal, groupSize = 4, maxPromptTokens = 1024 } = options;
  const { coefficient, discount, numEpochs, maxTokens = 1024, learningRate = 1e-4 } = options;
  if (datasets.length === 0) throw new ArgumentError("datasets", "must hold at least one");
  const sampling = await service.createSamplingClient({ baseModel: model, signal });
  const tokenizer = await sampling.getTokenizer({ signal });
  const checkpointPath = options.loadCheckpointPath;
  const renderer = await chooseRenderer({ ...options, tokenizer, checkpointPath });
  const parts = datasets.map((dataset, index) => {
    const prompts = dataset.prompts.map((prompt) => asMessages(prompt));
    for (const [at, prompt] of prompts.entries()) {
      const { length } = renderer.buildGenerationPrompt(prompt);
      if (length <= maxPromptTokens) continue;
      const place = `datasets[${index}].prompts[${at}]`;
      throw new ArgumentError(place, `has ${length} tokens; maxPromptTokens is ${maxPromptTokens}`);
    }
    return {
      teacher: toTeacher(dataset.teacher),
      promptOf: teacherPrompts(prompts, dataset.teacherMessages, renderer),
      groups: groupDataset(
        prompts,
        (prompt) => promptGroup(prompt, { renderer, size: groupSize, tags: [tagOf(index)] }),
        {
          groupsPerBatch: dataset.groupsPerBatch ?? Math.min(32, prompts.length),
          numEpochs,
          seed: options.seed,
        },
      ),
    };
  });
  const adjuster: DataAdjuster = async (data, groups, context) => {
    const indexOf = ({ group }: PolicyDatum): number =>
      parts.findIndex((_, index) => groups[group]!.tags.includes(tagOf(index)));
    const teachers = await Promise.all(
      data.map((datum) => {
        const { teacher, promptOf } = parts[indexOf(datum)]!;
        return teacherLogprobs(teacher, datum, { promptOf, signal: context.signal });
      }),
    );
    return penalizeTeacherDistance(data, teachers, {
      coefficient: coefficient ?? 1,
      discount,
      ...(parts.length > 1 && { datasets: data.map(indexOf) }),
    });
  };
  return {
    recipeName: "on_policy_distillation",
    ...options,
    maxTokens,
    learningRate,
    dataset: side(parts.map(({ groups }) => groups)),
    config: {
      kl_penalty_coef: coefficient ?? 1,
      kl_discount_factor: discount ?? 0,
      renderer_name: renderer.name,
      group_size: groupSize,
    },
    adjusters: [adjuster],
  };
}

/** The prompts that a teacher reads, found by the tokens of those that the student read. */
export function teacherPrompts(
  prompts: readonly (readonly Message[])[],
  teacherMessages: TeacherDataset["teacherMessages"],
  renderer: Renderer,
): TeacherOptions["promptOf"] {
  if (!teacherMessages) return undefined;
  const keyOf = (prompt: ModelInput): string => prompt.toInts().join(" ");
  const known = new Map(
    prompts.map((prompt) => [
      keyOf(renderer.buildGenerationPrompt(prompt)),
      renderer.buildGenerationPrompt(teacherMessages(prompt)),
    ]),
  );
  return (studentPrompt) => known.get(keyOf(studentPrompt)) ?? studentPrompt;
}

function tagOf(dataset: number): string {
  return `dataset_${dataset}`;
}

/** Data sets side by side: every batch has the groups of each, as long as all of them last. */
function side(datasets: readonly RlDataset[]): RlDataset {
  return {
    length: Math.min(...datasets.map(({ length }) => length)),
    batch: async (index) =>
      (await Promise.all(datasets.map(async (dataset) => dataset.batch(index)))).flat(),
  };
}
