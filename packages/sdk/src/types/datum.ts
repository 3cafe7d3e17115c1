import { ArgumentError } from "../errors/argument-error.js";
import {
  mapped,
  record,
  strictObject,
  withDefault,
  type InputOf,
  type ValueOf,
} from "../schema/schema.js";
import { inspectSymbol } from "./inspect.js";
import { ModelInput, ModelInputSchema, type ModelInputLike } from "./model-input.js";
import { checkSpans, type DatumProvenance } from "./provenance.js";
import {
  TensorData,
  TensorDataSchema,
  toStorage,
  type TensorDtype,
  type TensorLike,
  type TypedArray,
  type NestedList,
} from "./tensor-data.js";

/** Everything that is accepted as the tensor of a loss input. */
export type LossFnInput =
  | TensorData
  | TensorLike
  | TypedArray
  | number
  | NestedList<number | boolean>
  | NestedList<bigint>;

/** Loss inputs by name; names are the API's own (`target_tokens`, `weights`, ...). */
export type LossFnInputsLike = Readonly<Record<string, LossFnInput>>;

/** Everything that is accepted as a `Datum`. */
export type DatumLike = Datum | DatumInit;

/** A `Datum` in its plain form. */
export interface DatumInit {
  /** What the model reads: token ids, or pieces of text, pictures and audio. */
  readonly modelInput: ModelInputLike;
  /** What the loss needs, by name: one value per position of the input. */
  readonly lossFnInputs?: LossFnInputsLike | undefined;
}

// Plain lists carry no dtype; these are the names for which the API fixes one.
const listDtypes: Readonly<Record<string, TensorDtype>> = {
  target_tokens: "int64",
  weights: "float32",
  advantages: "float32",
  logprobs: "float32",
  clip_low_threshold: "float32",
  clip_high_threshold: "float32",
};

const compactedNames = new Set(["target_tokens", "weights"]);

/** One training example: what the model reads and what its loss needs. Immutable. */
export class Datum {
  /** What the model reads. */
  readonly modelInput: ModelInput;
  /** What the loss needs, by name: one value per position of the input. */
  readonly lossFnInputs: Readonly<Record<string, TensorData>>;
  /** Where its tokens come from; set by `withProvenance`. JSON and the JSON dialect leave it out. */
  readonly provenance?: DatumProvenance;

  constructor(init: DatumInit) {
    this.modelInput = readInput(init.modelInput);
    this.lossFnInputs = Object.fromEntries(
      Object.entries(init.lossFnInputs ?? {}).map(([name, value]) => [
        name,
        toLossFnInput(name, value),
      ]),
    );
  }

  /**
   * A copy that names the samples its tokens come from. Nothing is computed from it: a server may use it to find
   * again what it has in memory.
   */
  withProvenance(provenance: DatumProvenance): Datum {
    const { modelInput, lossFnInputs } = this;
    const targets = lossFnInputs["target_tokens"];
    checkSpans("modelInput", provenance.modelInput, modelInput.length);
    checkSpans("lossFnInputs", provenance.lossFnInputs, rowsOf(targets));
    const copy = new Datum({ modelInput, lossFnInputs });
    (copy as { provenance?: DatumProvenance }).provenance = provenance;
    return copy;
  }

  /** Plain lists, for logs and files. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { modelInput, lossFnInputs } = this;
    return { modelInput, lossFnInputs };
  }

  /** How it is printed. */
  [inspectSymbol](): string {
    const inputs = Object.entries(this.lossFnInputs).map(
      ([name, { dtype, shape, data }]) =>
        `${name}: ${dtype} [${(shape ?? [data.length]).join(", ")}]`,
    );
    return `Datum(${this.modelInput[inspectSymbol]()}; ${inputs.join("; ")})`;
  }

  /** Takes a `Datum` or its plain form. */
  static from(value: DatumLike): Datum {
    return value instanceof Datum ? value : new Datum(value);
  }
}

/** Positions of targets: a matrix has a row for each. */
function rowsOf(targets: TensorData | undefined): number {
  return targets?.shape?.[0] ?? targets?.data.length ?? 0;
}

/** Converts one loss input by its name, with the rules of the Python SDK. */
export function toLossFnInput(name: string, value: LossFnInput): TensorData {
  const field = `lossFnInputs.${name}`;
  if (value instanceof TensorData) return value;
  if (ArrayBuffer.isView(value)) {
    return TensorData.fromTypedArray(toStorage(value, field));
  }
  if (Array.isArray(value) || typeof value === "number") {
    const dtype = Object.hasOwn(listDtypes, name) ? listDtypes[name] : undefined;
    if (!dtype) {
      throw new ArgumentError(
        field,
        `a plain list has no dtype; pass a typed array or TensorData, or use one of ${Object.keys(listDtypes).join(", ")}`,
      );
    }
    return TensorData.fromNested(value, dtype, field);
  }
  if (isTensorLike(value)) {
    const tensor = new TensorData({ data: toStorage(value.data, field), shape: value.shape });
    return compactedNames.has(name) ? tensor.toCompact() : tensor;
  }
  throw new ArgumentError(field, `expected numbers or a tensor, got ${typeof value}`);
}

export const LossFnInputs = record(TensorDataSchema);
/** What a loss needs for one datum: tensors by name. */
export type LossFnInputs = ValueOf<typeof LossFnInputs>;

const DatumFields = strictObject("Datum", {
  modelInput: ModelInputSchema,
  lossFnInputs: withDefault(LossFnInputs, {}),
});

export const DatumSchema = mapped<
  Datum,
  DatumLike,
  ValueOf<typeof DatumFields>,
  InputOf<typeof DatumFields>
>("Datum", DatumFields, {
  wrap: (inner) => new Datum(inner),
  unwrap: (value) => {
    const { modelInput, lossFnInputs } = Datum.from(value);
    return { modelInput, lossFnInputs };
  },
});

function isTensorLike(value: unknown): value is TensorLike {
  return (
    typeof value === "object" &&
    value !== null &&
    "data" in value &&
    ArrayBuffer.isView(value.data) &&
    "shape" in value &&
    Array.isArray(value.shape)
  );
}

function readInput(value: ModelInputLike): ModelInput {
  try {
    return ModelInput.from(value);
  } catch (error) {
    throw ArgumentError.within("modelInput", error);
  }
}
