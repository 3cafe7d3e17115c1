/** Frozen weights in 8 bits, one scale per output, and the quantization of activations. */
export interface Int8Precision {
  readonly weights: "int8";
  /** Quantization of values before a product: one digit, or as many digits as make 16 bits. */
  readonly activations: "int8" | "int16";
  /** Number of digits: `int16` takes two of 8 bits, or three of 7. */
  readonly digits?: DigitCount;
  /** Bits of a digit; 7 on processors where sums of 8-bit products overflow. @default 8 */
  readonly digitBits?: 7 | 8;
}

/** Number of digits of a value. */
export type DigitCount = 1 | 2 | 3;

/** 32-bit floats, or frozen weights in 8 bits. */
export type Precision = { readonly weights: "f32" } | Int8Precision;

/** Number of digits of values, unless it is already fixed. */
export function digitsOf({ activations, digits, digitBits = 8 }: Int8Precision): DigitCount {
  if (digits !== undefined) return digits;
  if (activations === "int8") return 1;
  return digitBits === 8 ? 2 : 3;
}
