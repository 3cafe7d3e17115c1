import type { DimBindings } from "../graph/dim.js";
import type { BufferPool } from "../execution/buffer-pool.js";
import type { PortValues, Program } from "../execution/program.js";
import type { GradientTarget } from "./gradient-sum.js";
import type { Activations, LayerParameters } from "./layer-pass.js";

/** Runs a program with arrays from the pool for its results, or for those that are wanted. */
export async function compute(
  pool: BufferPool,
  program: Program,
  feeds: PortValues,
  sizes: DimBindings,
  wanted?: readonly string[],
): Promise<Activations> {
  const results: Activations = {};
  for (const [name, length] of program.resultLengths(sizes)) {
    if (wanted?.includes(name) ?? true) results[name] = pool.take(length);
  }
  await program.run(feeds, results, sizes);
  return results;
}

/** Runs a backward program: gradients of parameters are added up, the others returned. */
export async function computeGradients(
  pool: BufferPool,
  program: Program,
  feeds: PortValues,
  sizes: DimBindings,
  parameters: LayerParameters,
  targetOf: (resultName: string) => GradientTarget | undefined,
): Promise<Activations> {
  const values: Activations = {};
  const targets: GradientTarget[] = [];
  for (const [name, length] of program.resultLengths(sizes)) {
    const target = targetOf(name);
    if (target === undefined) values[name] = pool.take(length);
    else targets.push(target);
  }
  await parameters.collect(targets, (gradients) =>
    program.run(feeds, { ...values, ...gradients }, sizes),
  );
  return values;
}
