import type { DeviceChoice, LoraAdapter } from "@tinker-ts/engine";
import type { DownloadProgress } from "@tinker-ts/hub";
import type { EngineKit, StoredAdapter } from "../engine-port/engine-kit.js";
import { adapterOptions } from "./adapter-options.js";

/** Resources for the engine. */
export interface EngineSettings {
  readonly threads?: number;
  readonly memoryBytes?: number;
  readonly device?: DeviceChoice;
}

/** Loads the engine package; it is large, so it is loaded with the first model. */
export async function loadEngineKit(settings: EngineSettings): Promise<EngineKit> {
  const engine = await import("@tinker-ts/engine");
  const { threads, memoryBytes } = settings;
  return {
    createEngine: ({ device = settings.device } = {}) =>
      engine.Engine.create({
        ...(device === undefined ? {} : { device }),
        ...(threads === undefined ? {} : { threads }),
        ...(memoryBytes === undefined ? {} : { memoryBytes }),
      }),
    async findModel(location, { onProgress, signal }) {
      const { folder, commit } = await engine.findModel(location, {
        onProgress: (progress) => onProgress(describeProgress(progress)),
        signal,
      });
      return { folder, isFromHub: commit !== null };
    },
    readFacts: (folder) => engine.readModelConfig(folder),
    async writeAdapter(folder, stored, onWritten) {
      const { optimizer = null } = stored.state;
      const targets = engine.loraTargetsOf(stored.state.tensors);
      const adapter = { ...toLoraAdapter(stored), targets };
      await engine.writeAdapter(folder, adapter, { optimizer, onWritten });
    },
    async readAdapter(folder, modelFolder) {
      const config = await engine.readModelConfig(modelFolder);
      const adapter = await engine.readAdapter(folder, { config });
      const optimizer = await engine.readOptimizer(folder, adapter);
      return { tensors: adapter.tensors, ...(optimizer ? { optimizer } : {}) };
    },
    async readForeignAdapter(folder, modelFolder) {
      const model = await engine.openModelFolder(modelFolder);
      try {
        const adapter = await engine.readAdapter(folder, model);
        const optimizer = await engine.readOptimizer(folder, adapter);
        const { rank, alpha, trainAttn, trainMlp, trainUnembed, samplingOnly } = adapter;
        const seed = String(adapter.seed ?? 0);
        return {
          lora: { rank, alpha, seed, trainAttn, trainMlp, trainUnembed },
          state: { tensors: adapter.tensors, ...(optimizer ? { optimizer } : {}) },
          ...(samplingOnly === undefined ? {} : { samplingOnly }),
        };
      } finally {
        await model.close();
      }
    },
  };
}

function describeProgress({ file, bytes, totalBytes }: DownloadProgress): string {
  const megabytes = (count: number): string => (count / 1e6).toFixed(0);
  return `${file}, ${megabytes(bytes)} of ${megabytes(totalBytes)} MB`;
}

function toLoraAdapter({ lora, baseModel, state }: StoredAdapter): Omit<LoraAdapter, "targets"> {
  const { rank, alpha, trainAttn, trainMlp, trainUnembed } = lora;
  const { seed } = adapterOptions(lora);
  const flags = { trainAttn, trainMlp, trainUnembed };
  return {
    rank,
    alpha,
    ...flags,
    seed,
    baseModel,
    tensors: state.tensors,
  };
}
