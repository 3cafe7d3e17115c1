import type { Datum as EngineDatum, LossInput, PassResult, StepMetrics } from "@tinker-ts/engine";
import { TensorData, type Datum, type ModelInput, type WireInput } from "tinker-ts/wire";
import { ApiError } from "../errors/api-error.js";

/** Data of a request as the engine wants them; names the datum and field at fault. */
export function toEngineData(data: readonly Datum[]): EngineDatum[] {
  return data.map((datum, index) => ({
    tokens: textTokens(datum.modelInput, `data[${index}].model_input`),
    inputs: Object.fromEntries(
      Object.entries(datum.lossFnInputs).map(([name, tensor]) => [
        name,
        toEngineTensor(tensor, `data[${index}].loss_fn_inputs.${name}`),
      ]),
    ),
  }));
}

/** The tokens of an input that is text only. */
export function textTokens(input: ModelInput, field: string): Int32Array {
  const other = input.chunks.find((chunk) => chunk.type !== "encoded_text");
  if (other) {
    throw new ApiError(
      400,
      `${field}: ${other.type} chunks need a model that reads them; this server's models read text only`,
    );
  }
  return input.toInts();
}

/** What the engine gave back, in the form of the API. */
export function toPassOutput(pass: PassResult): WireInput<"ForwardBackwardOutput"> {
  return {
    lossFnOutputType: "TorchLossReturn",
    lossFnOutputs: pass.outputs.map(({ logprobs, shape }) => ({
      logprobs: new TensorData({ data: logprobs, shape }),
    })),
    metrics: { ...pass.metrics },
  };
}

/** What a step did, under the names that clients know. */
export function toStepMetrics(step: StepMetrics): Record<string, number> {
  return {
    "grad_norm:mean": step.gradientNorm,
    "update_norm:mean": step.updateNorm,
    "learning_rate:mean": step.learningRate,
    "step:max": step.step,
  };
}

function toEngineTensor(tensor: TensorData, field: string): LossInput {
  const { data, shape } = tensor.toDense();
  if (data instanceof BigInt64Array) {
    throw new ApiError(400, `${field}: holds integers beyond 32 bits, which no token id has`);
  }
  return { data, shape: shape ?? [data.length] };
}
