import { mkdir, open } from "node:fs/promises";
import path from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { findDamage, manifestFile, readManifest } from "./manifest.js";
import { ApiError, badRequest } from "../errors/api-error.js";

/** The files of an adapter; nothing else of an archive is unpacked. */
const adapterFiles = new Set([
  "adapter_config.json",
  "adapter_model.safetensors",
  "optimizer.safetensors",
  manifestFile,
]);

/** Largest JSON file, and largest list of tensors: both are parsed whole. */
const [maxJsonBytes, maxHeaderBytes] = [1 << 19, 1 << 20];

/** Unpacks the adapter in a tar archive (packed or not) into a folder; links and paths are ignored. */
export async function unpackAdapter(
  body: AsyncIterable<Uint8Array> | null,
  folder: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<void> {
  if (!body) throw badRequest("body", "is empty; send a tar archive of a PEFT adapter");
  const tar = await import("tar");
  await mkdir(folder, { recursive: true });
  let sizeBytes = 0;
  let unpackedBytes = 0;
  const limit = new Transform({
    transform(part: Uint8Array, _encoding, done) {
      sizeBytes += part.length;
      done(sizeBytes > maxBytes ? tooLarge(maxBytes) : null, part);
    },
  });
  const unpack = tar.x({
    cwd: folder,
    strict: true,
    filter(name, entry) {
      unpackedBytes += entry.size;
      // A small archive can expand to a large one.
      if (unpackedBytes > maxBytes) unpack.abort(tooLarge(maxBytes));
      const file = name.replace(/^\.\//, "");
      if (!adapterFiles.has(file) || !("type" in entry) || entry.type !== "File") return false;
      if (!file.endsWith(".safetensors") && entry.size > maxJsonBytes) {
        const problem = `${file} of the archive has ${entry.size} bytes; the limit is ${maxJsonBytes}`;
        unpack.abort(badRequest("body", problem));
      }
      return true;
    },
  });
  try {
    await pipeline(Readable.from(body), limit, unpack, { signal });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ApiError) throw error;
    throw badRequest("body", `is not a tar archive: ${String(error)}`);
  }
  await checkHeaders(folder);
  await checkManifest(folder);
}

async function checkHeaders(folder: string): Promise<void> {
  for (const name of adapterFiles) {
    if (!name.endsWith(".safetensors")) continue;
    const file = await open(path.join(folder, name)).catch(() => undefined);
    if (!file) continue;
    const size = Buffer.alloc(8);
    try {
      await file.read(size, 0, size.length, 0);
    } finally {
      await file.close();
    }
    const headerBytes = size.readBigUInt64LE();
    if (headerBytes <= maxHeaderBytes) continue;
    const problem = `the list of tensors in ${name} has ${headerBytes} bytes; the limit is ${maxHeaderBytes}`;
    throw badRequest("body", problem);
  }
}

/** An adapter that says what its files must be like is taken at its word. */
async function checkManifest(folder: string): Promise<void> {
  const files = Object.entries((await readManifest(folder))?.files ?? {});
  const wanted = Object.fromEntries(files.filter(([name]) => adapterFiles.has(name)));
  const damage = await findDamage(folder, wanted);
  if (damage) throw badRequest("body", `${damage.file} of the archive ${damage.problem}`);
}

function tooLarge(maxBytes: number): ApiError {
  const headers = { connection: "close" };
  return new ApiError(413, `the archive is larger than ${maxBytes} bytes`, { headers });
}
