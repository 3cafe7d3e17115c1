import { encodeJson, stringifyJson, type WireInput, type WireTypeName } from "tinker-ts/wire";
import type { EnginePass } from "../../workers/engine-pass.js";
import type { RunUpdate } from "../../recording/recorder.js";
import type { RequestRow, Settled } from "../../store/requests-table.js";
import type { Usage } from "../../store/usage-table.js";
import type { LiveModel } from "../live-models.js";

/** One request and the model in memory that it is for. */
export interface OperationInput {
  readonly live: LiveModel;
  readonly request: RequestRow;
  /** Reads the payload of the request. */
  readonly bytes: () => Promise<Uint8Array>;
  /** Reads the payload of a pass, as the engine takes it. */
  readonly pass: () => Promise<EnginePass>;
  readonly signal?: AbortSignal;
}

/** What an operation has done. Nothing of it counts before its commit. */
export interface Done {
  /** Encodes the result for the client. */
  readonly result: () => Settled;
  readonly usage: readonly Usage[];
  /**
   * - `none`: the model is as before
   * - `journaled`: repeating the request gives the same model again
   * - `replaced`: the model is a new one, and its state is on disk already
   */
  readonly change: "none" | "journaled" | "replaced";
  /** What the studio shows of it. */
  readonly update?: RunUpdate;
  /** Writes in the transaction of the result. */
  readonly write?: () => void;
  /** Runs after that transaction. */
  readonly afterCommit?: () => Promise<void>;
  /** Removes files when that transaction did not happen. */
  readonly undo?: () => Promise<void>;
}

/** What a kind of request does to a model in memory, when it is new and when the model is brought back. */
export interface TrainingOperation {
  /** What it needs a turn at. */
  readonly resource: "engine" | "disk" | "none";
  /** Refuses a new request that the model has no room for. */
  readonly check?: (live: LiveModel) => void;
  readonly run: (input: OperationInput) => Promise<Done>;
}

/** Tokens that an operation has used; of a save its number is counted, not tokens. */
export function tokensOf({ usage }: Done): number {
  return usage
    .filter(({ kind }) => kind !== "checkpoint")
    .reduce((sum, { amount }) => sum + amount, 0);
}

/** A result as JSON. */
export function jsonResult<N extends WireTypeName>(
  resultType: N,
  value: WireInput<N>,
  times: { readonly engineMs?: number } = {},
): Pick<Done, "result"> {
  const encode = (): Uint8Array => Buffer.from(stringifyJson(encodeJson(resultType, value)));
  return { result: () => ({ state: "done", resultType, bytes: encode(), ...times }) };
}
