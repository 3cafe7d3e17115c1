import { TinkerError, type TinkerErrorOptions } from "./tinker-error.js";

/** A call that was sent in several chunks and did not succeed as a whole; the cause holds the reason. */
export class PartialCallError extends TinkerError {
  override readonly name: string = "PartialCallError";
  /** How many chunks the call was sent in. */
  readonly chunkCount: number;
  /** Chunks (from 0) that failed. */
  readonly failedChunks: readonly number[];
  /** Chunks (from 0) that the server accepted and may have applied. */
  readonly acceptedChunks: readonly number[];

  constructor(
    message: string,
    options: TinkerErrorOptions & {
      chunkCount: number;
      failedChunks: readonly number[];
      acceptedChunks: readonly number[];
    },
  ) {
    super(message, { ...options, code: "partial_call" });
    this.chunkCount = options.chunkCount;
    this.failedChunks = options.failedChunks;
    this.acceptedChunks = options.acceptedChunks;
  }
}
