import { ModelInput, type ModelInputChunkInput } from "tinker-ts";
import type { Message } from "./message.js";
import type { SupervisedExample } from "./renderer.js";
import type { TrainOnWhat } from "./train-on-what.js";

/** A chunk of a conversation and whether it is trained. */
export interface WeightedChunk {
  readonly chunk: ModelInputChunkInput;
  readonly weight: 0 | 1;
  /** Number of first tokens that are always context. @default 0 */
  readonly given?: number;
}

/** Joins chunks; empty ones, which services refuse, are left out. */
export function assembleExample(chunks: readonly WeightedChunk[]): SupervisedExample {
  const kept = chunks.filter(({ chunk }) => chunkLength(chunk) > 0);
  const length = kept.reduce((sum, { chunk }) => sum + chunkLength(chunk), 0);
  const weights = new Float32Array(length);
  let offset = 0;
  for (const { chunk, weight, given = 0 } of kept) {
    const end = offset + chunkLength(chunk);
    // A model never writes a picture.
    if (weight === 1 && "tokens" in chunk) weights.fill(1, Math.min(offset + given, end), end);
    offset = end;
  }
  return { input: new ModelInput({ chunks: kept.map(({ chunk }) => chunk) }), weights };
}

/** Positions that a chunk takes. */
export function chunkLength(chunk: ModelInputChunkInput): number {
  if ("tokens" in chunk) return chunk.tokens.length;
  return "expectedTokens" in chunk ? (chunk.expectedTokens ?? 0) : 0;
}

/** Whether the content of a message is trained. */
export function isTrained(
  message: Message,
  place: { readonly isLast: boolean; readonly inLastAssistantTurn: boolean },
  trainOnWhat: TrainOnWhat,
): boolean {
  const isAssistant = message.role === "assistant";
  switch (trainOnWhat) {
    case "last_assistant_message":
      return isAssistant && place.isLast;
    case "last_assistant_turn":
      return isAssistant && place.inLastAssistantTurn;
    case "all_assistant_messages":
      return isAssistant;
    case "all_messages":
    case "all_tokens":
      return true;
    case "all_user_and_system_messages":
      return message.role === "user" || message.role === "system";
    case "customized":
      return message.trainable === true;
  }
}
