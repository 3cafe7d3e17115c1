import type { Datum } from "../types/datum.js";
import type { ModelInput, ModelInputChunk } from "../types/model-input.js";
import type { TensorData } from "../types/tensor-data.js";

const trainingBytesPerToken = 4;
const samplingBytesPerToken = 10;
const bytesPerCsrIndex = 8;

/** About how many bytes a datum takes in a training request. */
export function estimateDatumBytes({ modelInput, lossFnInputs }: Datum): number {
  let sizeBytes = inputBytes(modelInput, trainingBytesPerToken);
  for (const tensor of Object.values(lossFnInputs)) sizeBytes += tensorBytes(tensor);
  return sizeBytes;
}

/** About how many bytes a prompt takes in a sampling request, with the tokens to score. */
export function estimatePromptBytes(prompt: ModelInput, targets: TensorData | null = null): number {
  const targetBytes = samplingBytesPerToken * (targets?.data.length ?? 0);
  return targetBytes + inputBytes(prompt, samplingBytesPerToken);
}

function inputBytes({ chunks }: ModelInput, bytesPerToken: number): number {
  let sizeBytes = 0;
  for (const chunk of chunks) sizeBytes += chunkBytes(chunk, bytesPerToken);
  return sizeBytes;
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
