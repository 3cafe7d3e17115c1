import type { ModelConfig, RopeConfig } from "../files/model-config.js";

/** Cosines and sines of rotary angles for positions 0, 1, 2 ..., each [positions, headDim / 2]. */
export interface RotaryAngles {
  readonly positions: number;
  readonly cos: Float32Array;
  readonly sin: Float32Array;
}

/** Computes the table of the first `positions` positions in double precision. */
export function rotaryAngles(config: ModelConfig, positions: number): RotaryAngles {
  const frequencies = rotaryFrequencies(config.rope, config.headDim);
  const width = frequencies.length;
  const cos = new Float32Array(positions * width);
  const sin = new Float32Array(positions * width);
  for (let position = 0; position < positions; position++) {
    for (const [index, frequency] of frequencies.entries()) {
      const angle = position * frequency;
      cos[position * width + index] = Math.cos(angle);
      sin[position * width + index] = Math.sin(angle);
    }
  }
  return { positions, cos, sin };
}

/** Angle per position of each pair of a head, after the scaling that the model asks for. */
export function rotaryFrequencies(rope: RopeConfig, headDim: number): readonly number[] {
  return Array.from({ length: headDim / 2 }, (_, pair) => {
    // Frequencies are rounded to single precision, as the models were trained with them.
    const frequency = Math.fround(1 / Math.fround(rope.theta ** ((2 * pair) / headDim)));
    return rope.scaling === null ? frequency : scaleFrequency(frequency, rope.scaling);
  });
}

/** Llama 3.1's rule: long wavelengths are stretched, short ones kept, those between blended. */
function scaleFrequency(frequency: number, scaling: NonNullable<RopeConfig["scaling"]>): number {
  const { factor, lowFrequencyFactor, highFrequencyFactor, originalContextLength } = scaling;
  const turns = (originalContextLength * frequency) / (2 * Math.PI);
  if (turns < lowFrequencyFactor) return frequency / factor;
  if (turns > highFrequencyFactor) return frequency;
  const blend = (turns - lowFrequencyFactor) / (highFrequencyFactor - lowFrequencyFactor);
  return ((1 - blend) * frequency) / factor + blend * frequency;
}
