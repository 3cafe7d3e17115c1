import type { Telling } from "../../recording/recorder.js";
import { encodeJson, stringifyJson, type WireInput, type WireTypeName } from "tinker-ts/wire";
import type { Checkpoints } from "../../checkpoints/checkpoints.js";
import type { Context } from "../../context/context.js";
import type { EnginePass } from "../../decoding/engine-pass.js";
import type { RequestHead, Settled } from "../../store/requests-table.js";
import type { Usage } from "../../store/usage-table.js";
import type { LiveModel } from "../live-model.js";
import type { SamplerWeights } from "../sampler-weights.js";
import type { Snapshots } from "../snapshots.js";

/** What operations work with. */
export interface OperationParts {
  readonly context: Context;
  readonly checkpoints: Checkpoints;
  readonly weights: SamplerWeights;
  readonly snapshots: Snapshots;
}

/** One request of a model whose turn has come. */
export interface OperationInput {
  readonly live: LiveModel;
  readonly request: RequestHead;
  /** Reads what the request asks for. */
  readonly payload: () => Promise<Uint8Array>;
  /** The same for a pass, as the engine wants it. */
  readonly readPass: () => Promise<EnginePass>;
  readonly signal: AbortSignal;
}

/** What an operation has done. Nothing of it counts before its commit. */
export interface OperationOutput {
  readonly settled: Settled;
  readonly usage: readonly Usage[];
  /**
   * - `none`: the model is as before
   * - `journaled`: repeating the request gives the same model again
   * - `replaced`: the model is a new one, and its state is on disk already
   */
  readonly change: "none" | "journaled" | "replaced";
  /** What the studio shows of it. */
  readonly telling?: Telling;
  /** Writes that belong into the transaction of the result. */
  readonly commit?: () => void;
  /** After that transaction. */
  readonly afterCommit?: () => Promise<void>;
  /** When that transaction did not happen. */
  readonly undo?: () => Promise<void>;
}

/** Carries out one kind of request. */
export type Operation = (parts: OperationParts, input: OperationInput) => Promise<OperationOutput>;

/** A result as JSON. */
export function jsonResult<N extends WireTypeName>(
  resultType: N,
  value: WireInput<N>,
  known: { readonly engineMs?: number } = {},
): { settled: Settled } {
  const bytes = Buffer.from(stringifyJson(encodeJson(resultType, value)));
  return { settled: { state: "done", resultType, bytes, ...known } };
}
