import { SafetensorsFile, writeSafetensors, type ParameterExport } from "@tinker-ts/engine";
import { isFile } from "@tinker-ts/hub/files";
import { recipeFingerprint, type Recipe } from "./recipe.js";

/** A run as it can be continued from. */
export interface Checkpoint {
  /** Steps that are done. */
  readonly step: number;
  /** Tokens that were trained on. */
  readonly tokens: number;
  readonly nextDocument: number;
  readonly state: Required<ParameterExport>;
}

type Tensors = ParameterExport["tensors"];

const prefixes = { weights: "weights/", first: "first_moments/", second: "second_moments/" };

/** Writes a checkpoint; the one before stays in place until the new one is complete. */
export async function writeCheckpoint(
  file: string,
  recipe: Recipe,
  checkpoint: Checkpoint,
): Promise<void> {
  const { tensors, optimizer } = checkpoint.state;
  const named = (prefix: string, group: Tensors) =>
    [...group].map(([name, tensor]) => ({ name: prefix + name, ...tensor }));
  await writeSafetensors(
    file,
    [
      ...named(prefixes.weights, tensors),
      ...named(prefixes.first, optimizer.firstMoments),
      ...named(prefixes.second, optimizer.secondMoments),
    ],
    {
      metadata: {
        step: String(checkpoint.step),
        tokens: String(checkpoint.tokens),
        nextDocument: String(checkpoint.nextDocument),
        optimizerStep: String(optimizer.step),
        fingerprint: recipeFingerprint(recipe, checkpoint.step),
      },
    },
  );
}

/** Reads a checkpoint of this recipe; null when there is none. */
export async function readCheckpoint(file: string, recipe: Recipe): Promise<Checkpoint | null> {
  if (!(await isFile(file))) return null;
  const stored = await SafetensorsFile.open(file);
  try {
    const { metadata } = stored;
    const number = (name: string) => Number(metadata[name]);
    if (metadata["fingerprint"] !== recipeFingerprint(recipe, number("step"))) {
      throw new Error(
        `${file} belongs to another recipe. Start anew with --fresh, or choose another --work folder.`,
      );
    }
    return {
      step: number("step"),
      tokens: number("tokens"),
      nextDocument: number("nextDocument"),
      state: {
        tensors: await readGroup(stored, prefixes.weights),
        optimizer: {
          step: number("optimizerStep"),
          firstMoments: await readGroup(stored, prefixes.first),
          secondMoments: await readGroup(stored, prefixes.second),
        },
      },
    };
  } finally {
    await stored.close();
  }
}

async function readGroup(file: SafetensorsFile, prefix: string): Promise<Tensors> {
  const group = new Map<string, { data: Float32Array; shape: readonly number[] }>();
  for (const [name, { shape }] of file.tensors) {
    if (!name.startsWith(prefix)) continue;
    group.set(name.slice(prefix.length), { data: await file.readFloats(name), shape });
  }
  return group;
}
