import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type * as Common from "onnxruntime-common";
import { EngineError } from "../errors.js";

/** The part of ONNX Runtime's binding for Node that is used here. */
type Binding = Pick<typeof Common, "InferenceSession" | "Tensor"> & {
  readonly listSupportedBackends?: () => readonly { readonly name: string }[];
};

const version = "1.30.0";
const require = createRequire(import.meta.url);
const carried = path.resolve(
  path.dirname(fileURLToPath(import.meta.url)),
  "../../onnxruntime/dist/index.js",
);

/**
 * The binding, from one of two places: the package that it comes in, when that is installed in the version that
 * the engine was made with, else the files that the packed engine carries (see `scripts/carry-runtime.mjs`).
 */
function loadBinding(): Binding {
  if (installedVersion() === version) return require("onnxruntime-node") as Binding;
  try {
    if (existsSync(carried)) return require(carried) as Binding;
  } catch (cause) {
    throw missing(`ONNX Runtime does not load here (${(cause as Error).message})`, cause);
  }
  throw missing("ONNX Runtime is not here");
}

function installedVersion(): string | undefined {
  try {
    return (require("onnxruntime-node/package.json") as { version: string }).version;
  } catch {
    return undefined;
  }
}

function missing(what: string, cause?: unknown): EngineError {
  return new EngineError(
    "runtime_missing",
    `${what}: this package has no build for ${process.platform} ${process.arch}. Install one with npm install onnxruntime-node@${version} --onnxruntime-node-install=skip`,
    { category: "internal", cause },
  );
}

const binding = loadBinding();

/** Sessions of ONNX Runtime. */
export const InferenceSession = binding.InferenceSession;
export type InferenceSession = Common.InferenceSession;

/** Tensors of ONNX Runtime. */
export const Tensor = binding.Tensor;
export type Tensor = Common.Tensor;

/** Whether the binding of this platform carries WebGPU. */
export function carriesWebGpu(): boolean {
  return binding.listSupportedBackends?.().some(({ name }) => name === "webgpu") ?? false;
}
