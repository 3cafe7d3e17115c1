import { Program, type PortValues, type ProgramOptions } from "../execution/program.js";
import { compileGraph, type CompiledGraph } from "../graph/compile.js";
import { Dim } from "../graph/dim.js";
import { Graph } from "../graph/graph.js";
import { int8Linear, linear, transpose, type Int8Digits } from "../graph/ops/index.js";

/** Exactness and speed of int8 weights on this processor. */
export interface Int8Support {
  /** Bits of a digit that give exact sums: 8, or 7 where sums of 8 bits overflow; null where neither does. */
  readonly digitBits: 7 | 8 | null;
  /** Speed of a one-digit product relative to 32 bits. */
  readonly speedup: number;
  /** Whether int8 weights are used here; otherwise models that ask for them get 32 bits. */
  readonly isUsed: boolean;
}

/**
 * Products slower than this, relative to 32 bits, are not worth using. The margin is wide because a
 * busy machine must not decide the precision of a model.
 */
const leastSpeedup = 0.67;

/**
 * Checks whether sums of extreme products are exact, and whether int8 is fast enough. Processors without
 * int8 dot products add pairs of products in 16 bits, and products of 8 bits then overflow.
 */
export async function probeInt8(options: ProgramOptions): Promise<Int8Support> {
  const digitBits = await exactBits(options);
  const speedup = digitBits === null ? 0 : await speedOf(options, digitBits);
  return { digitBits, speedup, isUsed: digitBits !== null && speedup >= leastSpeedup };
}

async function exactBits(options: ProgramOptions): Promise<7 | 8 | null> {
  for (const bits of [8, 7] as const) {
    if (await isExact(options, { digits: 1, bits })) return bits;
  }
  return null;
}

/** Sizes of the product that is checked; odd ones cover the edges of kernels too. */
const [checkedRows, checkedInputs, checkedOutputs] = [9, 250, 35];

async function isExact(options: ProgramOptions, format: Int8Digits): Promise<boolean> {
  // Rows and columns of one sign become digits at the ends of the range.
  const value = Float32Array.from({ length: checkedRows * checkedInputs }, (_, i) =>
    Math.floor(i / checkedInputs) % 2 === 0 ? 1 : -1,
  );
  const weight = Int8Array.from({ length: checkedOutputs * checkedInputs }, (_, i) =>
    Math.floor(i / checkedInputs) % 2 === 0 ? 127 : -127,
  );
  const scale = new Float32Array(checkedOutputs).fill(1);
  const product = new Float32Array(checkedRows * checkedOutputs);
  const size = checkedInputs * 127;
  for (const stored of [{}, { weight }]) {
    const compiled = int8Product(checkedInputs, checkedOutputs, format, stored);
    await withProgram(compiled, options, (program) =>
      program.run({ value, weight, scale }, { product }, { rows: checkedRows }),
    );
    const wrong = product.some((found, i) => {
      const isSameSign = Math.floor(i / checkedOutputs) % 2 === (i % checkedOutputs) % 2;
      return Math.abs(found - (isSameSign ? size : -size)) > 1e-4 * size;
    });
    if (wrong) return false;
  }
  return true;
}

const [timedRows, timedWidth] = [64, 768];

/** Runs that are timed: more where products seem slow, because other processes may have used the processor. */
const [leastRuns, mostRuns] = [5, 200];

/** One thread is timed: several would wait for each other on a busy machine. */
async function speedOf(given: ProgramOptions, bits: 7 | 8): Promise<number> {
  const options = { ...given, threads: 1 };
  const value = Float32Array.from({ length: timedRows * timedWidth }, (_, i) => Math.sin(i));
  const weight = Int8Array.from({ length: timedWidth ** 2 }, (_, i) => (i * 37) % 255);
  const scale = new Float32Array(timedWidth).fill(1);
  const product = new Float32Array(timedRows * timedWidth);
  const floats = Float32Array.from(weight);
  const graph = new Graph();
  const plain = linear(
    graph.input("value", [Dim.symbol("rows"), timedWidth]),
    graph.input("weight", [timedWidth, timedWidth]),
  );
  const slow = compileGraph(graph, { outputs: { product: plain } });
  const fast = int8Product(timedWidth, timedWidth, { digits: 1, bits }, { weight });
  return withProgram(fast, options, (int8) =>
    withProgram(slow, options, async (float) => {
      const time = async (program: Program, feeds: PortValues): Promise<number> => {
        const startMs = performance.now();
        await program.run(feeds, { product }, { rows: timedRows });
        return performance.now() - startMs;
      };
      let [int8Ms, floatMs] = [Infinity, Infinity];
      const isSlow = (): boolean => floatMs < int8Ms;
      for (let run = 0; run < leastRuns || (run < mostRuns && isSlow()); run++) {
        int8Ms = Math.min(int8Ms, await time(int8, { value, scale }));
        floatMs = Math.min(floatMs, await time(float, { value, weight: floats }));
      }
      return floatMs / int8Ms;
    }),
  );
}

function int8Product(
  inputs: number,
  outputs: number,
  format: Int8Digits,
  stored: { readonly weight?: Int8Array },
): CompiledGraph {
  const graph = new Graph();
  const value = graph.input("value", [Dim.symbol("rows"), inputs]);
  const transposed = graph.input("weight", [outputs, inputs], "int8");
  const product = int8Linear(value, {
    transposed,
    values: transpose(transposed, [1, 0]),
    scale: graph.input("scale", [outputs]),
    format,
    gradientFormat: format,
  });
  return compileGraph(graph, { outputs: { product }, stored });
}

async function withProgram<T>(
  compiled: CompiledGraph,
  options: ProgramOptions,
  use: (program: Program) => Promise<T>,
): Promise<T> {
  const program = await Program.create(compiled, options);
  try {
    return await use(program);
  } finally {
    await program.release();
  }
}
