import {
  type LoraAdapter,
  loraTargetsOf,
  openModelFolder,
  readAdapter,
  readOptimizer,
  writeAdapter,
} from "@tinker-ts/hub/weights";
import type { Adapter } from "./adapter.js";
import type { BaseModel } from "./base-model.js";
import { EngineError } from "./errors.js";

/** How an adapter is saved. */
export interface SaveAdapterOptions {
  /** Save the optimizer too, to resume training exactly. @default false */
  readonly optimizer?: boolean;
  /** Name of the base model, recorded in the files. @default none */
  readonly baseModel?: string;
  /** Keep the adapter of the unembedding, which some servers do not load. @default true */
  readonly includeUnembed?: boolean;
  /** Replace an existing folder. @default false */
  readonly overwrite?: boolean;
  readonly signal?: AbortSignal;
}

/** Saves an adapter in PEFT's format, as a folder that appears only when it is complete. */
export async function saveAdapter(
  adapter: Adapter,
  folder: string,
  options: SaveAdapterOptions = {},
): Promise<void> {
  const { optimizer = false, baseModel = null, ...writing } = options;
  const { rank, alpha, seed, trainAttn, trainMlp, trainUnembed } = adapter;
  const flags = { trainAttn, trainMlp, trainUnembed };
  const state = await adapter.exportState({ optimizer });
  const { tensors } = state;
  const targets = loraTargetsOf(tensors);
  await writeAdapter(
    folder,
    { rank, alpha, seed, ...flags, targets, baseModel, tensors },
    { ...writing, optimizer: state.optimizer ?? null },
  );
}

/** How an adapter is loaded. */
export interface LoadAdapterOptions {
  /** Load the optimizer too; it must be there. @default false */
  readonly optimizer?: boolean;
  /** Load it to sample from alone, which also takes what cannot be trained here. @default false */
  readonly forSampling?: boolean;
  readonly signal?: AbortSignal;
}

/** Reads an adapter; some adapters have to be compared with their model's files. */
async function readWithBase(
  model: BaseModel,
  folder: string,
  signal: AbortSignal | undefined,
): Promise<LoraAdapter> {
  const { config } = model;
  if (model.folder === null) return readAdapter(folder, { config }, signal);
  const base = await openModelFolder(model.folder, signal);
  try {
    return await readAdapter(folder, base, signal);
  } finally {
    await base.close();
  }
}

/** Loads an adapter from a folder in PEFT's format, saved here or elsewhere, to train it on or to sample from. */
export async function loadAdapter(
  model: BaseModel,
  folder: string,
  { optimizer = false, forSampling = false, signal }: LoadAdapterOptions = {},
): Promise<Adapter> {
  const saved = await readWithBase(model, folder, signal);
  if (saved.samplingOnly !== undefined && !forSampling) {
    throw new EngineError(
      "sampling_only",
      `The adapter in ${folder} can be sampled from and not be trained: ${saved.samplingOnly}. Load it with ` +
        "forSampling.",
    );
  }
  const moments = optimizer ? await readOptimizer(folder, saved, signal) : null;
  if (optimizer && moments === null) {
    throw new EngineError(
      "no_optimizer_state",
      `${folder} has no optimizer; load it without, or save it with one.`,
    );
  }
  const { rank, alpha, trainAttn, trainMlp, trainUnembed, tensors } = saved;
  const adapter = await model.createAdapter({
    rank,
    alpha,
    seed: saved.seed ?? 0,
    trainAttn,
    trainMlp,
    trainUnembed,
    forSampling,
  });
  await adapter.importState(
    { tensors, ...(moments === null ? {} : { optimizer: moments }) },
    { optimizer },
  );
  return adapter;
}
