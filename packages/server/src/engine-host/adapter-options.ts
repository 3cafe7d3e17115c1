import type { AdapterProperties } from "@tinker-ts/engine";
import type { LoraSettings } from "../store/models-table.js";

/** What the engine needs to make this adapter, the same every time. */
export function adapterOptions(lora: LoraSettings): AdapterProperties {
  return { ...lora, seed: Number(BigInt.asUintN(53, BigInt(lora.seed))) };
}
