import { open, stat } from "node:fs/promises";
import type { TarEntry } from "./tar.js";

const peftName = "base_model.model.lm_head.";
const tinkerName = "base_model.model.model.unembed_tokens.";

/**
 * An adapter's weights with the unembedding under the name that archives of the Tinker service give it. Only
 * the header of the file differs; places of the tensors count from its end.
 */
export async function inTinkerLayout(entry: TarEntry): Promise<TarEntry> {
  const { path } = entry;
  const file = await open(path);
  try {
    const length = Buffer.alloc(8);
    await file.read(length, 0, 8, 0);
    const headerBytes = Number(length.readBigUInt64LE());
    const header = Buffer.alloc(headerBytes);
    await file.read(header, 0, headerBytes, 8);
    const tensors = JSON.parse(header.toString()) as Record<string, unknown>;
    const renamed = Object.entries(tensors).map(([name, tensor]) => [
      name.startsWith(peftName) ? name.replace(peftName, tinkerName) : name,
      tensor,
    ]);
    const text = Buffer.from(JSON.stringify(Object.fromEntries(renamed)));
    // Readers map the tensors, so these have to begin at a multiple of eight.
    const head = Buffer.alloc(8 + Math.ceil(text.length / 8) * 8, " ");
    head.writeBigUInt64LE(BigInt(head.length - 8));
    text.copy(head, 8);
    const { size } = await stat(path);
    return { ...entry, replaced: { head, fromByte: Math.min(size, 8 + headerBytes) } };
  } finally {
    await file.close();
  }
}
