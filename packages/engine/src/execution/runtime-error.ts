import { EngineError } from "../errors.js";
import type { Device } from "./device.js";

/**
 * What failed of a device, by the words of ONNX Runtime and of Dawn, the WebGPU that it carries. "[Device] is
 * lost" and "[Invalid Buffer]" are what they say of a driver that loses the device or refuses memory; the other
 * words are read in their sources.
 */
const failures = [
  {
    code: "no_device",
    words: /failed to get a webgpu adapter|no supported adapters|not supported in this build/i,
    what: "has no adapter that can be used",
    wayOut: 'Install a driver, or use device "cpu".',
  },
  {
    code: "device_lost",
    words:
      /device\]? (is|was) lost|device lost|lost device|DXGI_ERROR_DEVICE|VK_ERROR_DEVICE_LOST/i,
    what: "was lost while it computed",
    wayOut: "What it held must be loaded again, by a new engine.",
  },
  {
    code: "device_out_of_memory",
    // Memory that was refused is noticed when it is first used.
    words:
      /invalid buffer|out of memory|out_of_memory|exceeds the max buffer size|allocation size too large|failed to allocate|bad allocation/i,
    what: "has not enough memory for this",
    wayOut: 'Use a smaller model, shorter sequences or device "cpu".',
  },
  // Other drivers may use other words. What failed in a way that is not known cannot be relied on either.
  {
    code: "device_failed",
    words: /(?:)/,
    what: "failed",
    wayOut: 'Use a new engine or device "cpu", and report this.',
  },
] as const;

/** An error of ONNX Runtime as one of the engine. */
export function runtimeError(error: unknown, { name }: Device): EngineError {
  const reason = messageOf(error).trim();
  const failure = name === "gpu" ? failures.find(({ words }) => words.test(reason)) : undefined;
  if (failure === undefined) {
    const message = `ONNX Runtime failed: ${reason}`;
    return new EngineError("runtime_failed", message, { category: "internal", cause: error });
  }
  const { code, what, wayOut } = failure;
  const message = `the GPU ${what} (${lastLine(reason)}). ${wayOut}`;
  return new EngineError(code, message, { category: "internal", cause: error });
}

/** The words of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Messages of ONNX Runtime begin with the place in its source; what happened stands behind. */
function lastLine(reason: string): string {
  const place = reason.lastIndexOf(" was false. ");
  const words = place < 0 ? reason : reason.slice(place + " was false. ".length);
  return words.split("\n")[0] ?? words;
}
