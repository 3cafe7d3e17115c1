import {
  ArgumentError,
  ModelInput,
  type CustomLoss,
  type SamplingClient,
  type TensorData,
} from "tinker-ts";
import { asMessages, textOf, type Message, type Renderer } from "../renderers/index.js";
import {
  groupDataset,
  maskedMean,
  penalizeTeacherDistance,
  rlOptionNames,
  train,
  type DataAdjuster,
  type PolicyDatum,
  type PolicyLoss,
  type RlTrainOptions,
} from "../rl/index.js";
import {
  checkOptionNames,
  chooseRenderer,
  contentHash,
  defaultLearningRate,
  enoughEpochs,
  inRunFolder,
  needWhole,
  pickOptions,
  runDefaults,
  type RunResult,
} from "../runs/index.js";
import { distillOptionNames } from "./option-names.js";
import { promptGroup, teacherPrompts, teacherView } from "./on-policy.js";
import { OwnTeacher } from "./own-teacher.js";
import { knownTargets, spread, targetDatum, type TeacherTopK } from "./soft-targets.js";
import { toTeacher, type Teacher } from "./teacher.js";

/** A question and an answer that shows how it is done. */
export interface Demonstration {
  /** What is asked. */
  readonly question: string | readonly Message[];
  /** A good answer; only the teacher reads it. */
  readonly answer: string;
}

/** How a model learns from demonstrations without repeating them word by word. */
export interface SdftOptions extends Omit<
  RlTrainOptions,
  "dataset" | "learningRate" | "maxTokens" | "loss" | "adjusters"
> {
  /** What is shown. */
  readonly demonstrations: readonly Demonstration[];
  /** Who has seen the answers. @default the base model as it is */
  readonly teacher?: SamplingClient | Teacher | undefined;
  /** Steps after which the student as it is then becomes the teacher, again and again. @default never */
  readonly teacherSyncEvery?: number | undefined;
  /** What the teacher is asked. @default the question, the answer as an example, and the request for an own one */
  readonly teacherMessages?: ((demonstration: Demonstration) => readonly Message[]) | undefined;
  /** The chat format: a renderer or its name. @default the one recommended for the model */
  readonly renderer?: Renderer | string | undefined;
  /** Tokens of the teacher's distribution that are learned at every place; 0 compares sampled tokens alone. @default 20 */
  readonly topK?: number | undefined;
  /** Whether KL(student, teacher) over these tokens is made small, instead of KL(teacher, student). @default false */
  readonly reverse?: boolean | undefined;
  /** Answers per question. @default 1 */
  readonly groupSize?: number | undefined;
  /** Questions per step. @default as many as there are, up to 32 */
  readonly groupsPerBatch?: number | undefined;
  /** Passes over the demonstrations. @default 1, or as many as give 30 steps */
  readonly numEpochs?: number | undefined;
  /** First tokens of answers that are not learned: there the teacher still speaks of the example. @default 3 */
  readonly skipTokens?: number | undefined;
  /** Positions that the teacher can read; what is beyond is not learned. @default 32768 */
  readonly maxContextLength?: number | undefined;
  /** Most tokens of an answer. @default 2048 */
  readonly maxTokens?: number | undefined;
  /** Learning rate of every update. @default a fifth of the rate recommended for the model; 2e-5 for families without one */
  readonly learningRate?: number | undefined;
}

/**
 * Self-distillation from demonstrations: the student answers a question, and learns at every place of its own
 * answer what the same model says there when it has seen a good answer. It keeps its own way of speaking,
 * which learning the demonstrations by heart would overwrite.
 */
export async function trainSdft(options: SdftOptions): Promise<RunResult> {
  return train(await sdftRun(options));
}

/** Self-distillation as a run of the reinforcement loop. */
export async function sdftRun(given: SdftOptions): Promise<RlTrainOptions> {
  checkOptionNames(given, distillOptionNames.sdft);
  const options = await inRunFolder(given);
  const { service, model, folder, signal, demonstrations, topK = 20, reverse = false } = options;
  const { teacherSyncEvery, ttlSeconds = runDefaults.ttlSeconds } = options;
  if (teacherSyncEvery !== undefined) needWhole("teacherSyncEvery", teacherSyncEvery, 1);
  const { groupSize: size = 1, maxTokens = 2048, seed } = options;
  const { learningRate = defaultLearningRate(model, { share: 0.2, otherwise: 2e-5 }) } = options;
  if (demonstrations.length === 0) throw new ArgumentError("demonstrations", "there are none");
  const base = await service.createSamplingClient({ baseModel: model, signal });
  const tokenizer = await base.getTokenizer({ signal });
  const checkpointPath = options.loadCheckpointPath;
  const renderer = await chooseRenderer({ ...options, tokenizer, checkpointPath });
  const { groupsPerBatch = Math.min(32, demonstrations.length) } = options;
  const perEpoch = Math.floor(demonstrations.length / groupsPerBatch);
  const { numEpochs = enoughEpochs(perEpoch) } = options;
  const first = toTeacher(options.teacher ?? base);
  const teacher = new OwnTeacher({ service, folder, first, every: teacherSyncEvery, ttlSeconds });
  const classroom = new Classroom(teacher, renderer, options);
  return {
    recipeName: "sdft",
    ...pickOptions(options, rlOptionNames),
    maxTokens,
    learningRate,
    dataset: groupDataset(
      demonstrations,
      ({ question }) => promptGroup(question, { renderer, size, tags: ["sdft"] }),
      { groupsPerBatch, numEpochs, seed },
    ),
    notCompared: ["teacher", "teacherMessages"].filter((name) => name in options),
    config: {
      data_hash: contentHash(demonstrations),
      skip_tokens: options.skipTokens,
      max_context_length: options.maxContextLength,
      topk: topK,
      reverse,
      teacher_sync_every: teacherSyncEvery,
      renderer_name: renderer.name,
      group_size: size,
      groups_per_batch: groupsPerBatch,
    },
    adjusters: [topK === 0 ? classroom.compareTokens : classroom.askForDistributions],
    loss: topK === 0 ? { name: "importance_sampling" } : classroom.lossOnDistributions(reverse),
  };
}

/** The question, the answer as an example, and the request for an own one. */
function askWithExample({ question, answer }: Demonstration): readonly Message[] {
  const messages = asMessages(question);
  const text = [
    textOf(messages.at(-1)!),
    `This is an example for a response to the question:\n${answer}`,
    "Now answer with a response of your own, including the thinking process.",
  ].join("\n\n");
  return [...messages.slice(0, -1), { role: "user", content: text }];
}

/** A sampled sequence as the teacher reads it. */
interface View {
  readonly sequence: ModelInput;
  readonly isCut: boolean;
  /** Where the teacher reads the target at a place; undefined where nothing is learned. */
  readonly placeOf: (at: number) => number | undefined;
}

/** A teacher that has seen the answers, and what it says of the students' own. */
class Classroom {
  readonly #teacher: OwnTeacher;
  readonly #options: SdftOptions;
  readonly #promptOf: (studentPrompt: ModelInput) => ModelInput;
  /** What was asked for data that wait for their pass. */
  readonly #lessons = new WeakMap<PolicyDatum, TeacherTopK>();

  constructor(teacher: OwnTeacher, renderer: Renderer, options: SdftOptions) {
    const { demonstrations, teacherMessages = askWithExample } = options;
    const prompts = demonstrations.map(({ question }) => asMessages(question));
    const byPrompt = new Map(prompts.map((prompt, index) => [prompt, demonstrations[index]!]));
    this.#teacher = teacher;
    this.#options = options;
    this.#promptOf = teacherPrompts(
      prompts,
      (prompt) => teacherMessages(byPrompt.get(prompt)!),
      renderer,
    )!;
  }

  /** Makes every token worth as much as it is more probable to the teacher than to the student. */
  readonly compareTokens: DataAdjuster = async (data, _groups, context) => {
    const { signal } = context;
    const teacher = await this.#teacher.at(context);
    const views = data.map((datum) => this.#view(datum));
    const learned = data.map((datum, index) => ({
      ...datum,
      mask: datum.mask.map((_, at) => Number(views[index]!.placeOf(at) !== undefined)),
    }));
    const logprobs = await Promise.all(
      views.map(async ({ sequence, placeOf }, index) => {
        const said = await teacher.logprobs(sequence, { signal });
        return Float32Array.from(data[index]!.targets, (_, at) => said[placeOf(at) ?? -1] ?? 0);
      }),
    );
    const { data: compared } = penalizeTeacherDistance(learned, logprobs, { coefficient: 1 });
    return {
      data: compared,
      metrics: {
        ...this.#counts(learned, views),
        "sdft/mean_advantage": maskedMean(
          learned,
          compared.map((datum) => datum.advantages),
        ),
        "sdft/mean_teacher_lp": maskedMean(learned, logprobs),
        "sdft/mean_student_lp": maskedMean(
          learned,
          learned.map((datum) => datum.logprobs),
        ),
      },
    };
  };

  /** Asks for the teacher's distribution at every place of the answers. */
  readonly askForDistributions: DataAdjuster = async (data, _groups, context) => {
    const { signal } = context;
    const { topK = 20 } = this.#options;
    const teacher = await this.#teacher.at(context);
    const views = data.map((datum) => this.#view(datum));
    const learned = await Promise.all(
      data.map(async (datum, index) => {
        const { sequence, placeOf } = views[index]!;
        const said = await teacher.topLogprobs(sequence, topK, { signal });
        const lesson = Array.from(datum.targets, (_, at) => knownTargets(said[placeOf(at) ?? -1]));
        const mask = datum.mask.map((_, at) => Number(lesson[at]!.length > 0));
        const taught = { ...datum, mask };
        this.#lessons.set(taught, lesson);
        return taught;
      }),
    );
    const entropies = learned.map((datum) =>
      this.#lessons.get(datum)!.map((row) => entropyOf(spread(row ?? []))),
    );
    return {
      data: learned,
      metrics: {
        ...this.#counts(learned, views),
        "sdft/topk": topK,
        "sdft/mean_teacher_entropy": maskedMean(learned, entropies),
      },
    };
  };

  /** Makes the student's distribution like the teacher's, over the teacher's best tokens. */
  lossOnDistributions(reverse: boolean): PolicyLoss {
    return {
      name: "own_targets",
      submit: (training, data) => {
        const lessons = data.map((datum) => this.#lessons.get(datum)!);
        const targets = data.map((datum, index) => targetDatum(datum.input, lessons[index]!));
        if (!reverse) return training.forwardBackward(targets, "cross_entropy");
        const bare = targets.map(({ modelInput, lossFnInputs }) => ({
          modelInput,
          lossFnInputs: { target_tokens: lossFnInputs["target_tokens"]! },
        }));
        return training.forwardBackwardCustom(bare, (_data, logprobs) =>
          reverseDivergence(lessons, logprobs),
        );
      },
    };
  }

  #view(datum: PolicyDatum): View {
    const { skipTokens = 3, maxContextLength = 32_768 } = this.#options;
    const { sequence: whole, promptLength, start } = teacherView(datum, this.#promptOf);
    const isCut = whole.length > maxContextLength;
    const tokens = whole.toInts();
    const sequence = isCut ? ModelInput.fromInts(tokens.slice(0, maxContextLength)) : whole;
    return {
      sequence,
      isCut,
      placeOf: (at) => {
        const place = promptLength + at - start;
        const isLearned = datum.mask[at] === 1 && at - start >= skipTokens;
        return isLearned && place < sequence.length ? place : undefined;
      },
    };
  }

  #counts(data: readonly PolicyDatum[], views: readonly View[]): Record<string, number> {
    return {
      "sdft/num_datums": data.length,
      "sdft/teacher_truncated_count": views.filter(({ isCut }) => isCut).length,
      "sdft/total_completion_positions": data.reduce(
        (sum, { mask }) => sum + mask.reduce((count, bit) => count + bit, 0),
        0,
      ),
    };
  }
}

/** KL(student, teacher), both over the teacher's best tokens, summed over places. */
export function reverseDivergence(
  lessons: readonly TeacherTopK[],
  logprobs: readonly TensorData[],
): CustomLoss {
  let total = 0;
  let entropy = 0;
  let places = 0;
  const gradients = lessons.map((lesson, index) => {
    const { data, shape } = logprobs[index]!;
    const width = shape!.at(-1)!;
    const gradient = new Float64Array(data.length);
    for (const [at, row] of lesson.entries()) {
      // A slot without a token of the teacher is no part of either distribution.
      if (!row || row.length === 0) continue;
      const teacher = spread(row);
      const own = row.map(([token], slot) => [token, Number(data[at * width + slot])] as const);
      const student = spread(own);
      const gaps = student.map((p, slot) => Math.log(p) - Math.log(teacher[slot]!));
      const divergence = student.reduce((sum, p, slot) => sum + (p === 0 ? 0 : p * gaps[slot]!), 0);
      for (const [slot, p] of student.entries()) {
        gradient[at * width + slot] = p === 0 ? 0 : p * (gaps[slot]! - divergence);
      }
      total += divergence;
      entropy += entropyOf(student);
      places++;
    }
    return gradient;
  });
  return {
    loss: total,
    gradients,
    metrics: {
      "sdft/reverse_kl_loss": total,
      "sdft/reverse_kl_mean": places === 0 ? 0 : total / places,
      "sdft/student_entropy_mean": places === 0 ? 0 : entropy / places,
      "sdft/reverse_kl_positions": places,
    },
  };
}

function entropyOf(probabilities: readonly number[]): number {
  return probabilities.reduce((sum, p) => (p === 0 ? sum : sum - p * Math.log(p)), 0);
}
