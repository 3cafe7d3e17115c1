import { readFile } from "node:fs/promises";
import path from "node:path";
import { decodeFloats, isFloatType } from "./floats.js";
import { SafetensorsFile, type TensorEntry } from "./safetensors.js";
import { WeightsError } from "./weights-error.js";

/** Numbers in some shape. */
export interface FloatTensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/** The two factors of an adapted module: `lora_A` (rank x in) and `lora_B` (out x rank), or three-dimensional by expert. */
export interface LoraPair {
  /** The module's path, as the adapter names it. */
  readonly path: string;
  readonly a: TensorEntry;
  readonly b: TensorEntry;
}

const keyPattern = /^base_model\.model\.(.+)\.lora_([AB])\.weight$/;

/** An adapter in a folder: `adapter_config.json` and `adapter_model.safetensors`. */
export class AdapterFolder {
  readonly rank: number;
  readonly alpha: number;
  readonly baseModel: string | undefined;
  /** By module; placeholders of modules that the model does not have are left out. */
  readonly pairs: readonly LoraPair[];
  readonly #file: SafetensorsFile;

  private constructor(file: SafetensorsFile, config: AdapterConfig, pairs: readonly LoraPair[]) {
    this.#file = file;
    this.rank = config.r;
    this.alpha = config.lora_alpha;
    this.baseModel = config.base_model_name_or_path ?? undefined;
    this.pairs = pairs;
  }

  static async open(folder: string): Promise<AdapterFolder> {
    const configFile = path.join(folder, "adapter_config.json");
    const config = JSON.parse(await readFile(configFile, "utf8")) as AdapterConfig;
    if (!(config.r > 0) || typeof config.lora_alpha !== "number") {
      throw new WeightsError(`${configFile}: r and lora_alpha are missing`);
    }
    const file = await SafetensorsFile.open(path.join(folder, "adapter_model.safetensors"));
    try {
      return new AdapterFolder(file, config, pairUp(file));
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** alpha / rank. */
  get scale(): number {
    return this.alpha / this.rank;
  }

  /** A factor; of one that has a dimension for experts, the part of one expert, or the one that serves them all. */
  async readFactor(entry: TensorEntry, expert = 0): Promise<FloatTensor> {
    const { dtype, shape, name, start, end } = entry;
    if (!isFloatType(dtype)) {
      throw new WeightsError(`${name}: weights of type ${dtype} cannot be used`);
    }
    const count = shape.length === 3 ? shape[0]! : 1;
    const size = (end - start) / count;
    const from = start + (count === 1 ? 0 : expert) * size;
    const bytes = await this.#file.read({ ...entry, start: from, end: from + size });
    return { shape: shape.slice(-2), data: decodeFloats(dtype, bytes) };
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

interface AdapterConfig {
  readonly r: number;
  readonly lora_alpha: number;
  readonly base_model_name_or_path?: string | null;
}

function pairUp({ tensors, path: file }: SafetensorsFile): LoraPair[] {
  const modules = new Map<string, { a?: TensorEntry; b?: TensorEntry }>();
  for (const entry of tensors.values()) {
    const [, module, side] = keyPattern.exec(entry.name) ?? [];
    if (module === undefined) throw new WeightsError(`${file}: ${entry.name} is no factor of LoRA`);
    const found = modules.get(module) ?? {};
    modules.set(module, { ...found, [side === "A" ? "a" : "b"]: entry });
  }
  const pairs = [...modules].flatMap(([module, { a, b }]) => {
    if (!a || !b) throw new WeightsError(`${file}: ${module} has one factor only`);
    // Empty tensors stand for projections that the model does not have.
    return a.shape.includes(0) || b.shape.includes(0) ? [] : [{ path: module, a, b }];
  });
  if (pairs.length === 0) throw new WeightsError(`${file}: has no factors of LoRA`);
  return pairs;
}
