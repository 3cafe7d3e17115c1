import type { PortAdapterOptions } from "../engine-port/engine-port.js";
import type { LoraSettings } from "../store/models-table.js";

/** What the engine needs to make this adapter, the same every time. */
export function adapterOptions(lora: LoraSettings): PortAdapterOptions {
  return { ...lora, seed: Number(BigInt.asUintN(53, BigInt(lora.seed))) };
}
