import type { WireValue } from "tinker-ts/wire";
import type { Workers } from "../workers/workers.js";
import type { SampleOrder } from "../engine-port/engine-port.js";
import { badRequest } from "../errors/api-error.js";

type SamplingParams = WireValue<"SamplingParams">;

type Extensions = Pick<
  SampleOrder,
  | "minP"
  | "frequencyPenalty"
  | "presencePenalty"
  | "repetitionPenalty"
  | "logitBias"
  | "minTokens"
  | "topLogprobs"
>;

const path = "sampling_params.extensions";

const numbers = {
  min_p: ["minP", 0, 1],
  frequency_penalty: ["frequencyPenalty", -100, 100],
  presence_penalty: ["presencePenalty", -100, 100],
  repetition_penalty: ["repetitionPenalty", 0.01, 100],
  min_tokens: ["minTokens", 0, Number.MAX_SAFE_INTEGER],
  top_logprobs: ["topLogprobs", 0, 20],
} as const satisfies Record<string, readonly [keyof Extensions, number, number]>;

const maxBiases = 16_384;

const whole = new Set(["min_tokens", "top_logprobs"]);

/**
 * What a sample request asks for beyond the Tinker API; refuses what is not known or out of its bounds. A schema
 * takes longer: see `schemaConstraint`.
 */
export function readExtensions(params: SamplingParams, vocabSize = Infinity): Extensions {
  const order: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(extensionsOf(params))) {
    if (name === "schema") continue;
    if (name === "logit_bias") order["logitBias"] = biasOf(value, vocabSize);
    else if (Object.hasOwn(numbers, name)) {
      const [field, min, max] = numbers[name as keyof typeof numbers];
      if (typeof value !== "number" || !(value >= min && value <= max)) {
        throw badRequest(`${path}.${name}`, `must be a number from ${min} to ${max}`);
      }
      if (whole.has(name) && !Number.isInteger(value)) {
        throw badRequest(`${path}.${name}`, "must be a whole number");
      }
      order[field] = value;
    } else throw badRequest(`${path}.${name}`, "is not known here");
  }
  return order;
}

/** What texts a sample may have, where its request has a schema. */
export async function schemaConstraint(
  workers: Workers,
  owner: string,
  params: SamplingParams,
): Promise<Pick<SampleOrder, "constraint">> {
  const { schema } = extensionsOf(params);
  const made = await workers.grammar(owner, { json: { schema }, calls: null, thinking: null });
  if ("problem" in made) throw badRequest(`${path}.schema`, made.problem);
  return { constraint: { grammar: made.grammar } };
}

/** Whether a request has a schema. */
export function hasSchema(params: SamplingParams): boolean {
  return "schema" in extensionsOf(params);
}

function extensionsOf({ unknownFields }: SamplingParams): Readonly<Record<string, unknown>> {
  const given = unknownFields?.["extensions"] ?? {};
  if (typeof given === "object" && !Array.isArray(given)) return given as Record<string, unknown>;
  throw badRequest(path, "must be an object");
}

function biasOf(value: unknown, vocabSize: number): ReadonlyMap<number, number> {
  if (typeof value !== "object" || value === null) {
    throw badRequest(`${path}.logit_bias`, "must be an object of numbers by token id");
  }
  const entries = Object.entries(value);
  if (entries.length > maxBiases) {
    throw badRequest(`${path}.logit_bias`, `has more than ${maxBiases} tokens`);
  }
  return new Map(
    entries.map(([token, bias]: [string, unknown]) => {
      const id = Number(token);
      const isToken = Number.isInteger(id) && id >= 0 && id < vocabSize;
      if (!isToken) throw badRequest(`${path}.logit_bias`, `${token} is not a token of the model`);
      if (typeof bias !== "number" || !(Math.abs(bias) <= 1000)) {
        throw badRequest(`${path}.logit_bias`, `the bias of ${token} must be from -1000 to 1000`);
      }
      return [id, bias];
    }),
  );
}
