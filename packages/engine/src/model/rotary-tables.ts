import {
  layerKind,
  type RopeConfig,
  type RopeScaling,
  type Rotation,
} from "@tinker-ts/hub/weights";
import type { ModelConfig } from "./model-config.js";
import { int64From } from "../util/arrays.js";

// Frequencies and angles are rounded to single precision after every operation, in the order in which
// transformers computes them. At position 4,000 the rounding of an angle is as large as 1e-4: models were
// trained with it, and only with the same rounding log-probabilities agree at long distances.
const { fround } = Math;

/** The feeds of a rotation: cosines and sines by row, each [rows, rotating dimensions / 2], and factors of queries [rows, 1]. */
export function tableNames(rotation: Rotation): Readonly<Record<"cos" | "sin" | "growth", string>> {
  return { cos: `${rotation}.cos`, sin: `${rotation}.sin`, growth: `${rotation}.growth` };
}

/** Columns of a rotation's table: pairs of a head's dimensions that rotate. */
export function rotaryWidth(config: ModelConfig, rotation: Rotation): number {
  const { rotaryDim = config.headDim } = ropeOf(config, rotation);
  return Math.ceil(rotaryDim / 2);
}

/** Longest sequence that is rotated with the usual frequencies; longer ones use others. */
export function usualLength(config: ModelConfig): number {
  const lengths = rotationsOf(config).map((rotation) => {
    const { scaling } = ropeOf(config, rotation);
    return scaling?.kind === "longrope" ? scaling.originalContextLength : Infinity;
  });
  return Math.min(...lengths);
}

/**
 * Angles of all rotations of a model by position, as feeds.
 *
 * Where a sequence's length decides how it rotates, tables have the angles of long sequences below those
 * of short ones: a token selects its angles by its row.
 */
export class RotaryAngles {
  /** Positions that the tables reach. */
  readonly positions: number;
  /** Rows of every table. */
  readonly rows: number;
  readonly feeds: Readonly<Record<string, Float32Array>>;
  readonly #usualLength: number;

  constructor(config: ModelConfig, positions: number) {
    this.positions = positions;
    this.#usualLength = usualLength(config);
    const isLong = this.#usualLength === Infinity ? [false] : [false, true];
    this.rows = positions * isLong.length;
    const feeds: Record<string, Float32Array> = {};
    for (const rotation of rotationsOf(config)) {
      const rope = ropeOf(config, rotation);
      const width = rotaryWidth(config, rotation);
      const [cos, sin] = [new Float32Array(this.rows * width), new Float32Array(this.rows * width)];
      for (const [index, long] of isLong.entries()) {
        const [start, end] = [index * positions * width, (index + 1) * positions * width];
        const frequencies = rotaryFrequencies(rope, config.headDim, long);
        fillAngles(
          frequencies,
          attentionFactor(rope),
          cos.subarray(start, end),
          sin.subarray(start, end),
        );
      }
      const names = tableNames(rotation);
      Object.assign(feeds, { [names.cos]: cos, [names.sin]: sin });
      if (rope.queryGrowth === undefined) continue;
      const { weight, length } = rope.queryGrowth;
      feeds[names.growth] = Float32Array.from({ length: this.rows }, (_, row) => {
        const position = row % positions;
        return 1 + weight * fround(Math.log(1 + Math.floor(position / length)));
      });
    }
    this.feeds = feeds;
  }

  /** The rows of sequences of some lengths, one sequence after the other. */
  rowsOf(lengths: readonly number[]): BigInt64Array {
    const rows = lengths.flatMap((length) =>
      Array.from({ length }, (_, position) => this.row(position, length)),
    );
    return int64From(rows);
  }

  /** The row of a position in a sequence of some length. */
  row(position: number, length: number): number {
    return length > this.#usualLength ? this.positions + position : position;
  }
}

/** Angle per position of each pair of a head, after the scaling that the model asks for. */
export function rotaryFrequencies(
  { theta, scaling, rotaryDim }: RopeConfig,
  headDim: number,
  long = false,
): readonly number[] {
  const dimensions = rotaryDim ?? headDim;
  return Array.from({ length: Math.ceil(dimensions / 2) }, (_, pair) => {
    const exponent = fround((2 * pair) / dimensions);
    const wavelength = fround(theta ** exponent);
    if (scaling?.kind === "longrope") {
      const factors = long ? scaling.longFactors : scaling.shortFactors;
      return fround(1 / fround(fround(factors[pair] ?? 1) * wavelength));
    }
    if (scaling?.kind === "yarn")
      return yarnFrequency(pair, wavelength, theta, dimensions, scaling);
    return scaleFrequency(fround(1 / wavelength), scaling);
  });
}

function scaleFrequency(
  frequency: number,
  scaling: Exclude<RopeScaling, { kind: "longrope" | "yarn" }> | null,
): number {
  if (scaling === null) return frequency;
  if (scaling.kind === "linear") return fround(frequency / fround(scaling.factor));
  return stretchFrequency(frequency, scaling);
}

/** Between a frequency and the same divided by a factor, by the turns that it takes within the original context. */
function yarnFrequency(
  pair: number,
  wavelength: number,
  theta: number,
  dimensions: number,
  scaling: Extract<RopeScaling, { kind: "yarn" }>,
): number {
  const { factor, betaFast, betaSlow, originalContextLength, truncate } = scaling;
  const pairOf = (turns: number): number =>
    (dimensions * Math.log(originalContextLength / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  const [first, last] = [pairOf(betaFast), pairOf(betaSlow)];
  const low = Math.max(truncate ? Math.floor(first) : first, 0);
  const high = Math.min(truncate ? Math.ceil(last) : last, dimensions - 1);
  const width = low === high ? 0.001 : high - low;
  const ramp = fround(Math.min(Math.max(fround(fround(pair - low) / width), 0), 1));
  const [kept, divided] = [fround(1 / wavelength), fround(1 / fround(factor * wavelength))];
  const share = fround(1 - ramp);
  return fround(fround(divided * fround(1 - share)) + fround(kept * share));
}

/** Llama 3.1's rule: long wavelengths are stretched, short ones kept, those between blended. */
function stretchFrequency(
  frequency: number,
  scaling: Extract<RopeScaling, { kind: "llama3" }>,
): number {
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

/** Fills a table, row by row: position 0, 1, 2 ... */
export function fillAngles(
  frequencies: readonly number[],
  factor: number,
  cos: Float32Array,
  sin: Float32Array,
): void {
  const width = frequencies.length;
  for (let position = 0; position * width < cos.length; position++) {
    for (const [index, frequency] of frequencies.entries()) {
      const angle = fround(position * frequency);
      cos[position * width + index] = fround(Math.cos(angle)) * factor;
      sin[position * width + index] = fround(Math.sin(angle)) * factor;
    }
  }
}

function attentionFactor({ scaling }: RopeConfig): number {
  const isScaled = scaling?.kind === "longrope" || scaling?.kind === "yarn";
  return isScaled ? fround(scaling.attentionFactor) : 1;
}

function ropeOf(config: ModelConfig, rotation: Rotation): RopeConfig {
  const rope = config[rotation];
  if (rope === undefined) throw new Error(`the configuration has no ${rotation}`);
  return rope;
}

/** The rotations that layers of a model use. */
function rotationsOf(config: ModelConfig): readonly Rotation[] {
  const used = new Set<Rotation>();
  for (let layer = 0; layer < config.layers; layer++) {
    const { rotation } = layerKind(config, layer);
    if (rotation !== null) used.add(rotation);
  }
  return [...used];
}
