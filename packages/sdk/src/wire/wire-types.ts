import { string, type InputOf, type ValueOf } from "../schema/schema.js";
import * as billing from "../types/billing.js";
import { DatumSchema, LossFnInputs } from "../types/datum.js";
import * as futures from "../types/futures.js";
import * as input from "../types/model-input.js";
import * as runs from "../types/runs.js";
import * as sampling from "../types/sampling.js";
import * as samplingSessions from "../types/sampling-sessions.js";
import * as service from "../types/service.js";
import * as telemetry from "../types/telemetry.js";
import { TensorDataSchema, TensorDtype } from "../types/tensor-data.js";
import * as training from "../types/training.js";
import * as weights from "../types/weights.js";

/** Every type of the API by its name; the one list that codecs, tests and docs walk. */
export const wireTypes = {
  ModelID: string,
  RequestID: string,
  TensorDtype,
  LossFnInputs,
  Datum: DatumSchema,
  ModelInput: input.ModelInputSchema,
  TensorData: TensorDataSchema,
  ...service,
  ...training,
  ...pick(input, [
    "ImageFormat",
    "EncodedTextChunk",
    "ImageChunk",
    "ImageAssetPointerChunk",
    "DmelChunk",
    "ModelInputChunk",
  ]),
  ...sampling,
  ...samplingSessions,
  ...weights,
  ...runs,
  ...futures,
  ...billing,
  ...telemetry,
};

/** The name of a wire type. */
export type WireTypeName = keyof typeof wireTypes;

/** The decoded value of a wire type. */
export type WireValue<N extends WireTypeName> = ValueOf<(typeof wireTypes)[N]>;

/** What can be encoded as a wire type. */
export type WireInput<N extends WireTypeName> = WireValue<N> | InputOf<(typeof wireTypes)[N]>;

function pick<T extends object, const K extends keyof T>(module: T, keys: readonly K[]) {
  return Object.fromEntries(keys.map((key) => [key, module[key]])) as Pick<T, K>;
}
