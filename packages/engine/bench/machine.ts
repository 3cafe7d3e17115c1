import os from "node:os";
import { compileGraph } from "../src/graph/compile.js";
import { Dim } from "../src/graph/dim.js";
import { Graph } from "../src/graph/graph.js";
import { linear, reduceSum } from "../src/graph/ops/index.js";
import { Program } from "../src/execution/program.js";
import { bestMs, gigaflops, heading, line, meanMs } from "./measure.js";

/** Sizes of products as training has them: rows, inner size, columns. */
const productSizes = [
  [512, 1024, 3072],
  [2048, 1024, 1024],
  [512, 256, 768],
] as const;

const options = { threads: os.availableParallelism() };

/** Prints what plain products reach at best, with the same runtime that the engine uses. */
export async function benchMachine(): Promise<void> {
  heading("The machine");
  line("plain matrix products, at best", gigaflops(await productSpeed(bestMs)));
}

/** Operations per second of plain products, as a way of measuring time sees them. */
export async function productSpeed(time: typeof bestMs): Promise<number> {
  let fastest = 0;
  for (const [rows, inner, columns] of productSizes) {
    const graph = new Graph();
    const product = linear(
      graph.input("left", [rows, inner]),
      graph.input("right", [columns, inner]),
    );
    const program = await Program.create(compileGraph(graph, { outputs: { product } }), options);
    const feeds = {
      left: new Float32Array(rows * inner).fill(0.5),
      right: new Float32Array(columns * inner).fill(0.25),
    };
    const results = { product: new Float32Array(rows * columns) };
    const ms = await time(500, () => program.run(feeds, results, {}));
    await program.release();
    fastest = Math.max(fastest, (2 * rows * inner * columns * 1000) / ms);
  }
  return fastest;
}

/** Bytes per second that a loop over a large array reads, on average: others share the memory. */
export async function readSpeed(): Promise<number> {
  const [rows, columns] = [512, 1 << 18];
  const graph = new Graph();
  const values = graph.input("values", [Dim.of(rows), Dim.of(columns)]);
  const sums = reduceSum(values, [1]);
  const program = await Program.create(compileGraph(graph, { outputs: { sums } }), options);
  const data = new Float32Array(rows * columns).fill(1);
  const results = { sums: new Float32Array(rows) };
  const read = (): Promise<void> => program.run({ values: data }, results, {});
  await read();
  const ms = await meanMs(500, read);
  await program.release();
  return (data.byteLength * 1000) / ms;
}
