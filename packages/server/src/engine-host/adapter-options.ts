import type { AdapterProperties } from "@tinker-ts/engine";
import type { LoraSettings } from "../store/models-table.js";

/** The engine's options for this adapter; always the same. */
export function adapterOptions(lora: LoraSettings): AdapterProperties {
  return { ...lora, seed: Number(BigInt.asUintN(53, BigInt(lora.seed))) };
}
