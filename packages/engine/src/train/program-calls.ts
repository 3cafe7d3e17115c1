import type { DimBindings } from "../graph/dim.js";
import { DeviceArray, type ValueMemory, type Values } from "../execution/device-array.js";
import type { PortValues, Program } from "../execution/program.js";
import type { GradientTarget } from "./gradient-sum.js";
import type { Activations, LayerParameters } from "./layer-pass.js";

/** What a program is to compute. */
export interface ProgramCall {
  readonly program: Program;
  readonly feeds: PortValues;
  readonly sizes: DimBindings & { readonly tokens: number };
  /** Tokens that are computed at once, where they do not see each other. @default all */
  readonly chunkTokens?: number;
  /** Awaited before every run. */
  readonly pause: () => Promise<void>;
}

/** Makes a call with arrays from the pool for its results, or for those that are wanted. */
export async function compute<V extends Values>(
  pool: ValueMemory<V>,
  call: ProgramCall,
  wanted?: readonly string[],
): Promise<Activations<V>> {
  const { program } = call;
  const results: Activations<V> = {};
  for (const [name, length] of program.resultLengths(call.sizes)) {
    if (wanted?.includes(name) ?? true) results[name] = await pool.take(length);
  }
  for (const { feeds, rowsOf, sizes } of runsOf(call)) {
    await call.pause();
    await program.run(feeds, rowsOf(results), sizes);
  }
  return results;
}

/** Makes a call of a backward program: gradients of parameters are added up, the others returned. */
export async function computeGradients<V extends Values>(
  pool: ValueMemory<V>,
  call: ProgramCall,
  parameters: LayerParameters,
  targetOf: (resultName: string) => GradientTarget | undefined,
): Promise<Activations<V>> {
  const { program } = call;
  const values: Activations<V> = {};
  const targets: GradientTarget[] = [];
  for (const [name, length] of program.resultLengths(call.sizes)) {
    const target = targetOf(name);
    if (target === undefined) values[name] = await pool.take(length);
    else targets.push(target);
  }
  for (const { feeds, rowsOf, sizes } of runsOf(call)) {
    await call.pause();
    await parameters.collect(targets, (gradients) =>
      program.run(feeds, { ...rowsOf(values), ...gradients }, sizes),
    );
  }
  return values;
}

/** One of the runs that a call consists of. */
interface ProgramRun {
  readonly feeds: PortValues;
  readonly sizes: DimBindings;
  /** The run's part of the results that have a row per token. */
  readonly rowsOf: (results: PortValues) => PortValues;
}

function* runsOf({ program, feeds, sizes, chunkTokens }: ProgramCall): Iterable<ProgramRun> {
  const { tokens } = sizes;
  if (chunkTokens === undefined || tokens <= chunkTokens) {
    yield { feeds, sizes, rowsOf: (results) => results };
    return;
  }
  const rowPorts = program.rowPorts("tokens");
  for (let start = 0; start < tokens; start += chunkTokens) {
    const end = Math.min(tokens, start + chunkTokens);
    const rowsOf = (values: PortValues): PortValues =>
      Object.fromEntries(
        Object.entries(values).map(([name, data]) => {
          if (data instanceof DeviceArray || !rowPorts.has(name)) return [name, data];
          const width = data.length / tokens;
          return [name, data.subarray(start * width, end * width)];
        }),
      );
    yield { feeds: rowsOf(feeds), sizes: { ...sizes, tokens: end - start }, rowsOf };
  }
}
