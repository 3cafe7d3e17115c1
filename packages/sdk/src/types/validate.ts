import { ArgumentError } from "../errors/argument-error.js";
import { checkOptions } from "../errors/check-options.js";
import { decodeWith } from "../schema/decode.js";
import { encodeWith } from "../schema/encode.js";
import type { InputOf, Schema, ValueOf } from "../schema/schema.js";
import { SamplingParams, type SamplingParamsInput } from "./sampling.js";
import { AdamParams, LoraConfig, type AdamParamsInput, type LoraConfigInput } from "./training.js";

/** Fills defaults in and refuses what no sampler can do; names the field and its range. */
export function checkSamplingParams(
  input: SamplingParamsInput,
  field = "samplingParams",
): SamplingParams {
  const params = complete(SamplingParams, "SamplingParams", input, field);
  const check = checker(field);
  if (params.maxTokens !== null) check("maxTokens", params.maxTokens >= 1, "at least 1");
  check("temperature", params.temperature >= 0, "0 (greedy) or more");
  check("topK", params.topK >= -1, "-1 (no limit), 0 (no limit) or more");
  check("topP", params.topP > 0 && params.topP <= 1, "above 0 and at most 1");
  const stops = typeof params.stop === "string" ? [params.stop] : (params.stop ?? []);
  for (const stop of stops) {
    const isUsable = typeof stop === "string" ? stop.length > 0 : stop >= 0;
    check("stop", isUsable, "non-empty text or token ids of 0 and above");
  }
  return params;
}

/** Fills defaults in and refuses values that would make a step meaningless. */
export function checkAdamParams(input: AdamParamsInput = {}, field = "adamParams"): AdamParams {
  const params = complete(AdamParams, "AdamParams", input, field);
  const check = checker(field);
  check("learningRate", params.learningRate >= 0, "0 or more");
  check("beta1", params.beta1 >= 0 && params.beta1 < 1, "at least 0 and below 1");
  check("beta2", params.beta2 >= 0 && params.beta2 < 1, "at least 0 and below 1");
  check("eps", params.eps >= 0, "0 or more");
  check("weightDecay", params.weightDecay >= 0, "0 or more");
  check("gradClipNorm", params.gradClipNorm >= 0, "0 (no clipping) or more");
  return params;
}

/** Fills defaults in and refuses an adapter that could not learn anything. */
export function checkLoraConfig(input: LoraConfigInput, field = "loraConfig"): LoraConfig {
  const config = complete(LoraConfig, "LoraConfig", input, field);
  const check = checker(field);
  check("rank", config.rank >= 1, "at least 1");
  if (!config.trainAttn && !config.trainMlp && !config.trainUnembed) {
    throw new ArgumentError(
      field,
      "at least one of trainAttn, trainMlp and trainUnembed must be true",
    );
  }
  return config;
}

// A trip over the wire form fills the defaults in and refuses mistyped fields.
function complete<S extends Schema>(
  schema: S,
  typeName: string,
  input: InputOf<S>,
  field: string,
): ValueOf<S> {
  checkOptions(input, [namesOf(schema)], field);
  try {
    return decodeWith(schema, typeName, encodeWith(schema, typeName, input)) as ValueOf<S>;
  } catch (error) {
    throw ArgumentError.within(field, error);
  }
}

const knownNames = new WeakMap<Schema, object>();

/** The fields of an object; made once for each kind of it. */
function namesOf(schema: Schema): object {
  const known = knownNames.get(schema);
  if (known) return known;
  const { node } = schema;
  const fields = node.kind === "object" ? Object.fromEntries(node.fields) : {};
  const names = node.kind === "object" && node.strict ? fields : { ...fields, unknownFields: {} };
  knownNames.set(schema, names);
  return names;
}

function checker(field: string) {
  return (name: string, isValid: boolean, wanted: string): void => {
    if (!isValid) throw new ArgumentError(`${field}.${name}`, `must be ${wanted}`);
  };
}
