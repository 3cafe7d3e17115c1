import { listSupportedBackends } from "onnxruntime-node";
import { EngineError } from "./errors.js";
import { compileGraph } from "./graph/compile.js";
import { Graph } from "./graph/graph.js";
import { negate } from "./graph/ops/index.js";
import { Program } from "./execution/program.js";

/**
 * Checks that ONNX Runtime can use an execution provider on this machine. That it knows one is not enough:
 * libraries or devices may be missing, which shows when a program is made for it.
 */
export async function checkExecutionProvider(name: string): Promise<void> {
  const known = listSupportedBackends().map((backend) => backend.name);
  if (!known.includes(name)) {
    throw refused(name, `This build of ONNX Runtime knows ${known.join(", ")}`);
  }
  if (name === "cpu") return;
  const graph = new Graph();
  const compiled = compileGraph(graph, { outputs: { result: negate(graph.input("value", [1])) } });
  try {
    const program = await Program.create(compiled, { threads: 1, executionProvider: name });
    await program.release();
  } catch (error) {
    const reason = error instanceof Error ? error.message.trim() : String(error);
    throw refused(name, `ONNX Runtime says: ${reason}`, error);
  }
}

function refused(name: string, reason: string, cause?: unknown): EngineError {
  const message = `executionProvider "${name}" cannot be used here; use "cpu". ${reason}.`;
  return new EngineError("no_execution_provider", message, { cause });
}
