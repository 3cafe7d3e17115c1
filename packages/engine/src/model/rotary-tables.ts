import type { ModelConfig, RopeConfig } from "../files/model-config.js";

// Frequencies and angles are rounded to single precision after every operation, in the order in which
// transformers computes them. At position 4,000 the rounding of an angle is as large as 1e-4: models were
// trained with it, and only with the same rounding log-probabilities agree at long distances.
const { fround } = Math;

/** Cosines and sines of rotary angles for positions 0, 1, 2 ..., each [positions, headDim / 2]. */
export interface RotaryAngles {
  readonly positions: number;
  readonly cos: Float32Array;
  readonly sin: Float32Array;
}

/** Computes the table of the first `positions` positions. */
export function rotaryAngles(config: ModelConfig, positions: number): RotaryAngles {
  const frequencies = rotaryFrequencies(config.rope, config.headDim);
  const width = frequencies.length;
  const cos = new Float32Array(positions * width);
  const sin = new Float32Array(positions * width);
  for (let position = 0; position < positions; position++) {
    for (const [index, frequency] of frequencies.entries()) {
      const angle = fround(position * frequency);
      cos[position * width + index] = Math.cos(angle);
      sin[position * width + index] = Math.sin(angle);
    }
  }
  return { positions, cos, sin };
}

/** Angle per position of each pair of a head, after the scaling that the model asks for. */
export function rotaryFrequencies(rope: RopeConfig, headDim: number): readonly number[] {
  return Array.from({ length: headDim / 2 }, (_, pair) => {
    const exponent = fround((2 * pair) / headDim);
    const frequency = fround(1 / fround(rope.theta ** exponent));
    return rope.scaling === null ? frequency : scaleFrequency(frequency, rope.scaling);
  });
}

/** Llama 3.1's rule: long wavelengths are stretched, short ones kept, those between blended. */
function scaleFrequency(frequency: number, scaling: NonNullable<RopeConfig["scaling"]>): number {
  const { factor, lowFrequencyFactor, highFrequencyFactor, originalContextLength } = scaling;
  // A number divided by a tensor is the number times the tensor's reciprocal in PyTorch.
  const wavelength = fround(fround(1 / frequency) * fround(2 * Math.PI));
  if (wavelength > originalContextLength / lowFrequencyFactor) return fround(frequency / factor);
  if (wavelength < originalContextLength / highFrequencyFactor) return frequency;
  const turns = fround(fround(1 / wavelength) * originalContextLength);
  const blend = fround(
    fround(turns - lowFrequencyFactor) / (highFrequencyFactor - lowFrequencyFactor),
  );
  const stretched = fround(fround(fround(1 - blend) * frequency) / factor);
  return fround(stretched + fround(blend * frequency));
}
