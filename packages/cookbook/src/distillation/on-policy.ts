import { ArgumentError, ModelInput, type SamplingClient } from "tinker-ts";
import { asMessages, type Message, type Renderer } from "../renderers/index.js";
import {
  fullSequence,
  groupDataset,
  groupOf,
  messageEnvironment,
  penalizeTeacherDistance,
  rlOptionNames,
  train,
  type DataAdjuster,
  type EnvironmentGroup,
  type PenaltyOptions,
  type PolicyDatum,
  type RlDataset,
  type RlTrainOptions,
} from "../rl/index.js";
import {
  checkOptionNames,
  chooseRenderer,
  contentHash,
  defaultLearningRate,
  enoughEpochs,
  inRunFolder,
  pickOptions,
  type RunResult,
} from "../runs/index.js";
import { distillOptionNames } from "./option-names.js";
import { toTeacher, type Teacher } from "./teacher.js";

/** Options of `teacherDistance`. */
export interface TeacherOptions extends Partial<PenaltyOptions> {
  /**
   * Strength.
   * @default 1
   */
  readonly coefficient?: number;
  /**
   * The teacher's prompt for a prompt of the student, for instance with an instruction in front.
   * @default the same prompt
   */
  readonly promptOf?: ((studentPrompt: ModelInput) => ModelInput) | undefined;
}

/**
 * Trains on a teacher's log-probabilities alone: the student samples, and the advantage of every token is the teacher's
 * log-probability less the student's. This is the gradient of KL(student, teacher)
 * at the places the student goes to. Both must share tokenizer and chat format. Goes into `adjusters` of the
 * reinforcement loop, with groups of rewards 0 (`promptGroup`); the metric is `teacher_kl`.
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

/** A teacher's log-probabilities of the tokens of a datum; 0 where nothing was sampled. */
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

/** Options of `promptGroup`. */
export interface PromptGroupOptions {
  /** The model's chat format. */
  readonly renderer: Renderer;
  /** Answers per prompt. */
  readonly size: number;
  /** Names for metrics, for instance the data set. */
  readonly tags?: readonly string[] | undefined;
}

/** Answers to one prompt, all with reward 0. */
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

/** Prompts and their teacher. */
export interface TeacherDataset {
  /** The prompts. */
  readonly prompts: readonly (string | readonly Message[])[];
  /** The teacher. */
  readonly teacher: SamplingClient | Teacher;
  /** Prompts per step. @default as many as there are, up to 32 */
  readonly groupsPerBatch?: number | undefined;
  /**
   * What the teacher is asked in place of a prompt, for instance with an instruction in front.
   * @default the same messages
   */
  readonly teacherMessages?: ((prompt: readonly Message[]) => readonly Message[]) | undefined;
}

/** Options of on-policy distillation. */
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
  /** Passes over the prompts. @default 1, or as many as give 30 steps */
  readonly numEpochs?: number | undefined;
  /** Most tokens of an answer. @default 1024 */
  readonly maxTokens?: number | undefined;
  /** Prompts that are longer are refused. @default 1024 */
  readonly maxPromptTokens?: number | undefined;
  /** Learning rate of every update. @default 0.4 of the rate recommended for the model; 1e-4 for families without one */
  readonly learningRate?: number | undefined;
}

/**
 * On-policy distillation: the student answers, the teacher scores every token, and the student approaches the teacher
 * (reverse KL). `teacher_kl` is the distance per token, with several data
 * sets also `teacher_kl/dataset_I`. A folder that holds a run is resumed.
 */
export async function trainOnPolicy(options: OnPolicyOptions): Promise<RunResult> {
  return train(await onPolicyRun(options));
}

/** On-policy distillation as a run of the reinforcement loop. */
export async function onPolicyRun(given: OnPolicyOptions): Promise<RlTrainOptions> {
  checkOptionNames(given, distillOptionNames["on-policy"]);
  const options = await inRunFolder(given);
  const { service, model, datasets, signal, groupSize = 4, maxPromptTokens = 1024 } = options;
  const { coefficient, discount, maxTokens = 1024 } = options;
  const { learningRate = defaultLearningRate(model, { share: 0.4, otherwise: 1e-4 }) } = options;
  if (datasets.length === 0) throw new ArgumentError("datasets", "must hold at least one");
  for (const [index, { prompts }] of datasets.entries()) {
    if (Array.isArray(prompts) && prompts.length > 0) continue;
    throw new ArgumentError(`datasets[${index}].prompts`, "must hold at least one prompt");
  }
  const batchOf = ({ groupsPerBatch, prompts }: TeacherDataset): number =>
    groupsPerBatch ?? Math.min(32, prompts.length);
  const perEpoch = datasets.map((one) => Math.floor(one.prompts.length / batchOf(one)));
  const { numEpochs = enoughEpochs(Math.min(...perEpoch)) } = options;
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
      teacher: toTeacher(dataset.teacher, `datasets[${index}].teacher`),
      promptOf: teacherPrompts(prompts, dataset.teacherMessages, renderer),
      groups: groupDataset(
        prompts,
        (prompt) => promptGroup(prompt, { renderer, size: groupSize, tags: [tagOf(index)] }),
        {
          groupsPerBatch: batchOf(dataset),
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
    ...pickOptions(options, rlOptionNames),
    maxTokens,
    learningRate,
    dataset: side(parts.map(({ groups }) => groups)),
    notCompared: ["teacher"],
    config: {
      data_hash: contentHash(
        datasets.map(({ prompts, groupsPerBatch }) => [prompts, groupsPerBatch]),
      ),
      kl_penalty_coef: coefficient ?? 1,
      kl_discount_factor: discount ?? 0,
      renderer_name: renderer.name,
      group_size: groupSize,
    },
    adjusters: [adjuster],
  };
}

/** The teacher's prompts by the tokens of the student's. */
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
