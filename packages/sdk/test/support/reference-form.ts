import { encodeJson, type ProtoTypeName, type WireValue } from "../../src/wire/index.js";
import type { Datum } from "../../src/types/datum.js";
import type { TensorData } from "../../src/types/tensor-data.js";

/** The plain form in which the golden protobuf cases write a decoded message. */
export function toReference(value: WireValue<ProtoTypeName>): unknown {
  if ("forwardBackwardInput" in value) {
    const { data, lossFn, lossFnConfig } = value.forwardBackwardInput;
    return {
      model_id: value.modelId,
      seq_id: value.seqId,
      forward_only: value.forwardOnly,
      loss_fn: lossFn,
      loss_fn_config: lossFnConfig,
      data: data.map(datum),
    };
  }
  if ("sequences" in value) {
    return {
      sequences: value.sequences.map(({ stopReason, tokens, logprobs }) => ({
        stop_reason: stopReason,
        tokens: [...tokens],
        logprobs: logprobs && [...logprobs],
      })),
      prompt_logprobs: value.promptLogprobs,
      topk_prompt_logprobs: value.topkPromptLogprobs,
      prompt_cache_hit_tokens: value.promptCacheHitTokens,
    };
  }
  return {
    loss_fn_output_type: value.lossFnOutputType,
    loss_fn_outputs: value.lossFnOutputs.map(tensors),
    metrics: value.metrics,
  };
}

function datum({ modelInput, lossFnInputs }: Datum): unknown {
  const { chunks } = encodeJson("ModelInput", modelInput) as { chunks: unknown };
  return { model_input: chunks, loss_fn_inputs: tensors(lossFnInputs) };
}

function tensors(byName: Readonly<Record<string, TensorData>>): unknown {
  return Object.fromEntries(Object.entries(byName).map(([name, value]) => [name, tensor(value)]));
}

function tensor(value: TensorData): unknown {
  const sparse = value.sparseCrowIndices
    ? {
        sparse_crow_indices: [...value.sparseCrowIndices],
        sparse_col_indices: [...(value.sparseColIndices ?? [])],
      }
    : {};
  return {
    dtype: value.dtype,
    shape: value.shape,
    data: Array.from(value.data, Number),
    ...sparse,
  };
}
