import { writeFile } from "node:fs/promises";
import path from "node:path";
import { isFile } from "../../files/paths.js";
import { EngineError } from "../engine-error.js";
import type { LoraTarget } from "../lora-modules.js";
import { writeSafetensors } from "../safetensors-writer.js";
import { elementCount, formatShape } from "../safetensors-header.js";
import { writeFolderAtomically } from "../file-helpers.js";
import {
  loraTensorNames,
  nameIn,
  parseLoraTensorName,
  type AdapterLayout,
  type LoraAdapter,
  type NamedTensor,
  type OptimizerState,
} from "./adapter.js";
import { formatPeftConfig } from "./config.js";
import { writeOptimizer } from "./optimizer-file.js";
import { adapterConfigFile, adapterWeightsFile } from "./read-adapter.js";

/** An empty file that is written last; a folder without it is incomplete. */
const completeMarkerFile = "checkpoint_complete";

/** Options of writing an adapter. */
export interface WriteAdapterOptions {
  /** Optimizer state to write beside the adapter, to resume training exactly. */
  readonly optimizer?: OptimizerState | null;
  /** Keeps the adapter of the unembedding, which some servers do not load. @default true */
  readonly includeUnembed?: boolean;
  /** Naming of the unembedding: as in PEFT, or as in archives of the Tinker service. @default "peft" */
  readonly layout?: AdapterLayout;
  /** Replaces an existing folder. @default false */
  readonly overwrite?: boolean;
  /** Called when all files are in the folder and before it appears; may add others. */
  readonly onWritten?: (unfinished: string) => Promise<void>;
  readonly signal?: AbortSignal;
}

/** Writes an adapter in PEFT's format, as a folder that appears only when it is complete. */
export async function writeAdapter(
  folder: string,
  adapter: LoraAdapter,
  options: WriteAdapterOptions = {},
): Promise<void> {
  const { optimizer, signal, includeUnembed = true, layout = "peft" } = options;
  if (optimizer && !includeUnembed) {
    throw new EngineError(
      "invalid_options",
      "An optimizer state belongs to the whole adapter: leave out `optimizer` or `includeUnembed: false`.",
    );
  }
  const written = includeUnembed ? adapter : withoutUnembed(adapter);
  checkTensors(written);
  const metadata = {
    format: "pt",
    train_attn: String(written.trainAttn),
    train_mlp: String(written.trainMlp),
    train_unembed: String(written.trainUnembed),
    ...(written.seed === null ? {} : { seed: String(written.seed) }),
  };
  await writeFolderAtomically(folder, options.overwrite ?? false, async (temporary) => {
    const config = `${JSON.stringify(formatPeftConfig(written), null, 2)}\n`;
    await writeFile(path.join(temporary, adapterConfigFile), config, { flush: true });
    const tensors = [...written.tensors]
      .filter(([name]) => isTargeted(name, written.targets))
      .map(([name, { shape, data }]) => ({ name: nameIn(layout, name), shape, data }));
    const signalOption = signal ? { signal } : {};
    const weights = path.join(temporary, adapterWeightsFile);
    await writeSafetensors(weights, tensors, { metadata, ...signalOption });
    if (optimizer) await writeOptimizer(temporary, written, optimizer, signal);
    signal?.throwIfAborted();
    await writeFile(path.join(temporary, completeMarkerFile), "", { flush: true });
    await options.onWritten?.(temporary);
  });
}

/** Whether a folder is a complete checkpoint. */
export async function isCompleteCheckpoint(folder: string): Promise<boolean> {
  return isFile(path.join(folder, completeMarkerFile));
}

function withoutUnembed(adapter: LoraAdapter): LoraAdapter {
  const tensors = new Map<string, NamedTensor>();
  for (const [name, tensor] of adapter.tensors) {
    if (!isTargeted(name, ["lm_head"])) tensors.set(name, tensor);
  }
  const targets = adapter.targets.filter((target) => target !== "lm_head");
  return { ...adapter, targets, tensors, trainUnembed: false };
}

function isTargeted(name: string, targets: readonly LoraTarget[]): boolean {
  const modulePath = parseLoraTensorName(name)?.path ?? "";
  return targets.some((target) => modulePath === target || modulePath.endsWith(`.${target}`));
}

function checkTensors(adapter: LoraAdapter): void {
  for (const [name, { shape, data }] of adapter.tensors) {
    const parsed = parseLoraTensorName(name);
    const rank = parsed?.factor === "a" ? shape[0] : shape[1];
    const isPair =
      parsed && Object.values(loraTensorNames(parsed.path)).every((n) => adapter.tensors.has(n));
    if (
      isPair &&
      shape.length === 2 &&
      rank === adapter.rank &&
      data.length === elementCount(shape)
    ) {
      continue;
    }
    throw new EngineError(
      "invalid_tensor",
      `The adapter's tensor "${name}" of shape ${formatShape(shape)} is not one of a pair of factors of rank ${adapter.rank}.`,
    );
  }
}
