import { EngineError } from "./errors.js";

/**
 * Checks an execution provider. Only the processor's is taken: ONNX Runtime may know others on this
 * machine, but gradients have been seen to come out wrong there, without a word.
 */
export function checkExecutionProvider(name: string): void {
  if (name === "cpu") return;
  throw new EngineError(
    "no_execution_provider",
    `executionProvider "${name}" cannot be used here; use "cpu". Others are not supported yet.`,
  );
}
