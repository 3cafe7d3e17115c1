import { listSupportedBackends } from "onnxruntime-node";
import { EngineError } from "./errors.js";

/** Checks that ONNX Runtime on this machine has an execution provider. */
export function checkExecutionProvider(name: string): void {
  const available = listSupportedBackends().map((backend) => backend.name);
  if (available.includes(name)) return;
  throw new EngineError(
    "no_execution_provider",
    `executionProvider "${name}" does not exist here; this build of ONNX Runtime has ` +
      `${available.join(", ")}.`,
  );
}
