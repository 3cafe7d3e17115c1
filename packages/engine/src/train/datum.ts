/** Numbers of a loss input with their shape. */
export interface LossInput {
  readonly data: Float32Array | Int32Array | Float64Array | BigInt64Array | readonly number[];
  readonly shape: readonly number[];
}

/** One training example: input tokens, and the inputs of the loss for every position. */
export interface Datum {
  readonly tokens: Int32Array | readonly number[];
  /** `target_tokens` and the inputs of the loss, each [length] or [length, targets per position]. */
  readonly inputs: Readonly<Record<string, LossInput>>;
}

/** A datum that has been checked and converted to plain arrays. */
export interface PreparedDatum {
  readonly tokens: Int32Array;
  readonly targetsPerRow: number;
  /** [length * targetsPerRow] */
  readonly targets: Int32Array;
  /** Inputs and settings of the loss by name, each [length * targetsPerRow]. */
  readonly inputs: Readonly<Record<string, Float32Array>>;
  readonly settings: Readonly<Record<string, Float32Array>>;
  /** Rows with at least one target that has a gradient. */
  readonly activeRows: Uint8Array;
  /** Shape of the targets as given, which is the shape of the log-probabilities to return. */
  readonly targetShape: readonly number[];
}
