import zlib from "node:zlib";

type Sync = (bytes: Uint8Array, options?: { maxOutputLength: number }) => Uint8Array;

/** Node's own zstd (22.15 and newer); undefined where there is none. */
export function builtInZstd(): { compress: Sync; decompress: Sync } | undefined {
  if (!("zstdCompressSync" in zlib)) return undefined;
  const { zstdCompressSync, zstdDecompressSync } = zlib as unknown as Record<string, Sync>;
  return { compress: zstdCompressSync!, decompress: zstdDecompressSync! };
}
