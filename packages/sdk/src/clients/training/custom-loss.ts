import { ArgumentError } from "../../errors/argument-error.js";
import { TinkerError } from "../../errors/tinker-error.js";
import { Datum, type DatumLike } from "../../types/datum.js";
import { TensorData } from "../../types/tensor-data.js";
import type { ForwardBackwardOutput } from "../../types/training.js";

/** What a custom loss computes from the logprobs of the target tokens. */
export interface CustomLoss {
  /** The value of the loss; must be finite. It is `loss:sum` of the result; `surrogate_loss:sum` is what the server computed. */
  readonly loss: number;
  /** The derivative of the loss by every logprob, one array per datum, as long as its logprobs. */
  readonly gradients: readonly (Float32Array | Float64Array | readonly number[])[];
  /** Numbers to add to the metrics of the result; they win over those that are there. */
  readonly metrics?: Readonly<Record<string, number>> | undefined;
}

/** A loss of one's own: gets the data and the logprobs of their targets, returns loss and gradients. */
export type CustomLossFn = (
  data: readonly Datum[],
  logprobs: readonly TensorData[],
) => CustomLoss | Promise<CustomLoss>;

const allowedInputs = new Set(["target_tokens", "weights"]);

/** Checks that data can be used with a custom loss. */
export function checkCustomData(data: readonly DatumLike[]): Datum[] {
  if (!Array.isArray(data) || data.length === 0) {
    throw new ArgumentError("data", "must be a list of at least one datum");
  }
  return data.map((value, index) => {
    const datum = Datum.from(value);
    const field = `data[${index}].lossFnInputs`;
    if (!Object.hasOwn(datum.lossFnInputs, "target_tokens")) {
      throw new ArgumentError(field, "a custom loss needs target_tokens");
    }
    const unexpected = Object.keys(datum.lossFnInputs).filter((name) => !allowedInputs.has(name));
    if (unexpected.length > 0) {
      throw new ArgumentError(
        field,
        `a custom loss takes target_tokens and weights only, not ${unexpected.join(", ")}; keep other inputs in your own variables`,
      );
    }
    return datum;
  });
}

/** The data of the forward pass: where no weights are given they are zero. */
export function forwardData(data: readonly Datum[]): Datum[] {
  return data.map((datum) => {
    const { target_tokens: targets, weights } = datum.lossFnInputs;
    if (weights || !targets) return datum;
    const { shape, data: values } = targets.toDense();
    const zeros = new TensorData({ data: new Float32Array(values.length), shape });
    return new Datum({
      modelInput: datum.modelInput,
      lossFnInputs: { ...datum.lossFnInputs, weights: zeros },
    });
  });
}

/** The logprobs of a forward pass, one tensor per datum. */
export function logprobsOf({ lossFnOutputs }: ForwardBackwardOutput, count: number): TensorData[] {
  if (lossFnOutputs.length !== count) {
    throw new TinkerError(
      `The server returned ${lossFnOutputs.length} outputs for ${count} data; a custom loss needs one each.`,
      { code: "bad_output" },
    );
  }
  return lossFnOutputs.map(({ logprobs }, index) => {
    if (logprobs) return logprobs.toDense();
    throw new TinkerError(`The server returned no logprobs for data[${index}].`, {
      code: "bad_output",
    });
  });
}

/**
 * Data with a cross entropy that has the gradient of the custom loss: the server's loss is
 * `sum(-logprob * weight)`, so the weights are the negated gradients.
 */
export function surrogateData(
  data: readonly Datum[],
  logprobs: readonly TensorData[],
  loss: number,
  gradients: CustomLoss["gradients"],
): Datum[] {
  if (!Number.isFinite(loss)) {
    throw new ArgumentError(
      "loss",
      `a custom loss must return a finite number, got ${String(loss)}`,
    );
  }
  if (!Array.isArray(gradients) || gradients.length !== data.length) {
    throw new ArgumentError("gradients", `must hold one array per datum (${data.length})`);
  }
  return data.map((datum, index) => {
    const gradient: ArrayLike<number> | undefined = gradients[index];
    const { data: values, shape } = logprobs[index]!;
    if (gradient?.length !== values.length) {
      throw new ArgumentError(
        `gradients[${index}]`,
        `must have one value per logprob (${values.length}), got ${gradient?.length ?? "none"}`,
      );
    }
    const weights = Float32Array.from(gradient, (value) => -value);
    const bad = weights.findIndex((value) => !Number.isFinite(value));
    if (bad >= 0) {
      throw new ArgumentError(
        `gradients[${index}][${bad}]`,
        `must be finite, got ${gradient[bad]}`,
      );
    }
    return new Datum({
      modelInput: datum.modelInput,
      lossFnInputs: {
        target_tokens: datum.lossFnInputs["target_tokens"]!,
        weights: new TensorData({ data: weights, shape }),
      },
    });
  });
}
