import type { LoweringRule } from "../graph/compile.js";

/** Devices: the processor, or a GPU through WebGPU. */
export type DeviceName = "cpu" | "gpu";

/** A device that runs programs, with the rules for operators it computes wrongly or not at all. */
export interface Device {
  readonly name: DeviceName;
  /** ONNX Runtime's name of it. */
  readonly provider: "cpu" | "webgpu";
  /** How operators are written for it. */
  readonly rules: readonly LoweringRule[];
  /** New tokens of a sequence that attention with a cache takes at once. */
  readonly mostNewTokens: number;
}

/** The processor: graphs run as they are. */
export const processor: Device = {
  name: "cpu",
  provider: "cpu",
  rules: [],
  mostNewTokens: Infinity,
};
