import { RandomStream } from "../util/random.js";
import type { ParameterLayout } from "../model/parameter-layout.js";

/**
 * Initial values of an adapter: first factors uniform in ±1/sqrt(inputs), as PEFT draws them, and second
 * factors zero, so that a new adapter changes nothing. Each tensor has a stream of its own: its values
 * depend on the seed, its position and its width, not on which other tensors exist.
 */
export function initialAdapter(layout: ParameterLayout, seed: number): Float32Array {
  const values = new Float32Array(layout.length);
  for (const { name, offset, shape } of layout.tensors) {
    const [rows = 0, inputs = 0] = shape;
    if (!name.endsWith("lora_A.weight")) continue;
    const random = new RandomStream(seed, ...nameWords(name));
    const bound = 1 / Math.sqrt(inputs);
    for (let i = 0; i < rows * inputs; i++) {
      values[offset + i] = (random.next() * 2 - 1) * bound;
    }
  }
  return values;
}

function nameWords(name: string): readonly number[] {
  return Array.from(name, (character) => character.codePointAt(0) ?? 0);
}
