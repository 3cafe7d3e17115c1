import type { Datum } from "../types/datum.js";
import type { ModelInput, ModelInputChunk } from "../types/model-input.js";
import type { TensorData } from "../types/tensor-data.js";

const trainingBytesPerToken = 4;
const samplingBytesPerToken = 10;
const bytesPerCsrIndex = 8;

/** About how many bytes a datum takes in a training request. */
export function estimateDatumBytes({ modelInput, lossFnInputs }: Datum): number {
  const tensors = Object.values(lossFnInputs);
  return tensors.reduce(
    (sum, tensor) => sum + tensorBytes(tensor),
    inputBytes(modelInput, trainingBytesPerToken),
  );
}

/** About how many bytes a prompt takes in a sampling request. */
export function estimatePromptBytes(prompt: ModelInput): number {
  return inputBytes(prompt, samplingBytesPerToken);
}

function inputBytes({ chunks }: ModelInput, bytesPerToken: number): number {
  return chunks.reduce((sum, chunk) => sum + chunkBytes(chunk, bytesPerToken), 0);
}

function chunkBytes(chunk: ModelInputChunk, bytesPerToken: number): number {
  switch (chunk.type) {
    case "encoded_text":
      return chunk.tokens.length * bytesPerToken;
    case "image":
      return chunk.data.byteLength;
    case "image_asset_pointer":
      return chunk.location.length;
    case "dmel":
      return chunk.dmel.byteLength;
  }
}

function tensorBytes({ data, dtype, sparseCrowIndices, sparseColIndices }: TensorData): number {
  const indices = (sparseCrowIndices?.length ?? 0) + (sparseColIndices?.length ?? 0);
  return data.length * (dtype === "float32" ? 4 : 8) + indices * bytesPerCsrIndex;
}
