import path from "node:path";
import {
  adapterConfigFile,
  adapterWeightsFile,
  decodeFloats,
  isStoredDtype,
  parseLoraTensorName,
  parsePeftConfig,
  readJsonObject,
  SafetensorsFile,
  storedElementBytes,
  type NamedTensor,
  type PeftConfig,
  type SafetensorsEntry,
} from "@tinker-ts/hub/weights";
import { WeightsError } from "./weights-error.js";

/** The two factors of an adapted module: `lora_A` (rank x in) and `lora_B` (out x rank), or three-dimensional by expert. */
export interface LoraPair {
  /** The module's path, as the adapter names it. */
  readonly path: string;
  readonly a: SafetensorsEntry;
  readonly b: SafetensorsEntry;
}

/** An adapter in a folder, for a model of any family: its factors stay on the disk until they are read. */
export class AdapterFolder {
  readonly rank: number;
  readonly alpha: number;
  readonly baseModel: string | null;
  /** By module; placeholders of modules that the model does not have are left out. */
  readonly pairs: readonly LoraPair[];
  readonly #file: SafetensorsFile;

  private constructor(file: SafetensorsFile, config: PeftConfig, pairs: readonly LoraPair[]) {
    this.#file = file;
    this.rank = config.rank;
    this.alpha = config.alpha;
    this.baseModel = config.baseModel;
    this.pairs = pairs;
  }

  static async open(folder: string): Promise<AdapterFolder> {
    const configFile = path.join(folder, adapterConfigFile);
    const config = parsePeftConfig(await readJsonObject(configFile), configFile);
    const file = await SafetensorsFile.open(path.join(folder, adapterWeightsFile));
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
  async readFactor(
    { name, dtype, shape, start, end }: SafetensorsEntry,
    expert = 0,
  ): Promise<NamedTensor> {
    if (!isStoredDtype(dtype)) {
      throw new WeightsError(`${name}: weights of type ${dtype} cannot be used`);
    }
    const count = shape.length === 3 ? shape[0]! : 1;
    const sizeBytes = (end - start) / count;
    const from = (count === 1 ? 0 : expert) * sizeBytes;
    const bytes = await this.#file.readBytes(name, { start: from, end: from + sizeBytes });
    const data = new Float32Array(sizeBytes / storedElementBytes[dtype]);
    decodeFloats(dtype, bytes.buffer, data, data.length);
    return { shape: shape.slice(-2), data };
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

function pairUp({ tensors, path: file }: SafetensorsFile): LoraPair[] {
  const modules = new Map<string, { a?: SafetensorsEntry; b?: SafetensorsEntry }>();
  for (const entry of tensors.values()) {
    const parsed = parseLoraTensorName(entry.name);
    if (!parsed) throw new WeightsError(`${file}: ${entry.name} is no factor of LoRA`);
    modules.set(parsed.path, { ...modules.get(parsed.path), [parsed.factor]: entry });
  }
  const pairs = [...modules].flatMap(([module, { a, b }]) => {
    if (!a || !b) throw new WeightsError(`${file}: ${module} has one factor only`);
    // Empty tensors are projections that the model does not have.
    return a.shape.includes(0) || b.shape.includes(0) ? [] : [{ path: module, a, b }];
  });
  if (pairs.length === 0) throw new WeightsError(`${file}: has no factors of LoRA`);
  return pairs;
}
