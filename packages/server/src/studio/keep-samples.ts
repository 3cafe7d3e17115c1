import type { StudioKept } from "tinker-ts/wire";
import { parsePath } from "../checkpoints/checkpoint-names.js";
import type { Core } from "../core.js";
import { badRequest } from "../errors/api-error.js";
import { toPlain } from "../store/sql.js";

type Fields = Readonly<Record<string, unknown>>;

/** An answer, and the run of the weights that it came from. */
interface Answer {
  readonly weights: string;
  readonly prompt: readonly number[];
  readonly samples: readonly Fields[];
  readonly modelId: string | null;
}

const maxAnswers = 100;

/**
 * Keeps answers of the playground with the runs that they concern. What a base model has said beside a checkpoint is
 * kept with that checkpoint's run; alone it is of no run.
 */
export function keepSamples(core: Core, owner: string, given: unknown): StudioKept {
  if (!Array.isArray(given) || given.length > maxAnswers) {
    throw badRequest("answers", `must be a list of at most ${maxAnswers}`);
  }
  const answers = (given as Fields[]).map((one, index) => readAnswer(core, owner, one, index));
  const { recorder, store, clock } = core.context;
  const main = answers.find(({ modelId }) => modelId !== null)?.modelId ?? null;
  if (recorder.capture === "off" || main === null) return { kept: 0 };
  let kept = 0;
  for (const { weights, prompt, samples, modelId } of answers) {
    const model = modelId ?? main;
    const step = store.logs.savedMark(weights)?.x ?? recorder.stepsOf(model) ?? 0;
    const exhibits = samples.map((sample, index) => toExhibit(weights, prompt, sample, index));
    const place = { owner, logId: model, modelId: model, step, kind: "sample" } as const;
    recorder.exhibits.add({ ...place, split: "playground", at: clock.now() }, () => ({
      heads: exhibits.map(({ head }) => head),
      contents: exhibits.map(({ content }) => content),
      seen: exhibits.length,
    }));
    kept += exhibits.length;
  }
  return { kept };
}

function readAnswer(core: Core, owner: string, one: Fields, index: number): Answer {
  const { weights, promptTokens, samples } = one;
  if (typeof weights !== "string") throw badRequest(`answers.${index}.weights`, "must be text");
  if (!isNumbers(promptTokens)) {
    throw badRequest(`answers.${index}.promptTokens`, "must be a list of numbers");
  }
  if (!Array.isArray(samples)) throw badRequest(`answers.${index}.samples`, "must be a list");
  for (const [place, { tokens, logprobs }] of (samples as Fields[]).entries()) {
    const field = `answers.${index}.samples.${place}`;
    if (!isNumbers(tokens)) throw badRequest(`${field}.tokens`, "must be a list of numbers");
    if (!isNumbers(logprobs) || logprobs.length !== tokens.length) {
      throw badRequest(`${field}.logprobs`, "must be a list as long as tokens");
    }
  }
  const run = weights.startsWith("tinker://") ? parsePath(weights).trainingRunId : null;
  const isOwn = run !== null && core.context.store.models.get(run)?.owner === owner;
  return {
    weights,
    prompt: promptTokens,
    samples: samples as Fields[],
    modelId: isOwn ? run : null,
  };
}

function toExhibit(weights: string, prompt: readonly number[], sample: Fields, index: number) {
  const tokens = sample["tokens"] as readonly number[];
  const logprobs = sample["logprobs"] as readonly number[];
  const sum = logprobs.reduce((total, one) => total + one, 0);
  return {
    head: {
      group: null,
      index,
      reward: null,
      advantage: null,
      nll: tokens.length === 0 ? null : toPlain(-sum / tokens.length),
      tokenCount: prompt.length + tokens.length,
      trainedCount: tokens.length,
      stopReason: typeof sample["stopReason"] === "string" ? sample["stopReason"] : null,
    },
    content: {
      columns: {
        tokens: [...prompt, ...tokens],
        mask: [...prompt.map(() => 0), ...tokens.map(() => 1)],
        samplerLogprob: [...prompt.map(() => Number.NaN), ...logprobs],
      },
      extra: { model: weights },
    },
  };
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((one) => typeof one === "number");
}
