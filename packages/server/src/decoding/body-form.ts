import type { WireTypeName } from "tinker-ts/wire";

/** What the bytes of a body are, and how much may come out of them. */
export interface BodyForm {
  readonly typeName: WireTypeName;
  readonly form: "json" | "proto";
  readonly isCompressed: boolean;
  readonly limits: UnpackLimits;
}

/** Bounds on what a body may unfold to; they hold before the work that it would cause. */
export interface UnpackLimits {
  /** After decompression, and in the form in which a pass is kept. */
  readonly maxDecompressedBytes: number;
  /** Data of one pass. */
  readonly maxBatchData: number;
  /** Tokens of one prompt. */
  readonly maxPromptTokens: number;
}
