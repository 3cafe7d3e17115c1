/** Frozen weights in 8 bits, one scale per output, and how what they are multiplied by is written. */
export interface Int8Precision {
  readonly weights: "int8";
  /** What a value is written in before it is multiplied: one digit, or as many as have 16 bits together. */
  readonly activations: "int8" | "int16";
  /** How many digits that is: `int16` takes two of 8 bits, or three of 7. */
  readonly digits?: DigitCount;
  /** Bits of a digit; 7 on processors whose sums of products of 8 bits overflow. @default 8 */
  readonly digitBits?: 7 | 8;
}

/** In how many digits a value is written. */
export type DigitCount = 1 | 2 | 3;

/** What is computed with: 32-bit floats, or frozen weights in 8 bits. */
export type Precision = { readonly weights: "f32" } | Int8Precision;

/** In how many digits values are written, unless that was decided before. */
export function digitsOf({ activations, digits, digitBits = 8 }: Int8Precision): DigitCount {
  if (digits !== undefined) return digits;
  if (activations === "int8") return 1;
  return digitBits === 8 ? 2 : 3;
}
