/** Frozen weights in 8 bits, one scale per output, and how what they are multiplied by is written. */
export interface Int8Precision {
  readonly weights: "int8";
  /** Digits of 8 bits that a value is written in before it is multiplied: one, or two. */
  readonly activations: "int8" | "int16";
  /** Bits of a digit; 7 on processors whose sums of products of 8 bits overflow. @default 8 */
  readonly digitBits?: 7 | 8;
}

/** What is computed with: 32-bit floats, or frozen weights in 8 bits. */
export type Precision = { readonly weights: "f32" } | Int8Precision;
