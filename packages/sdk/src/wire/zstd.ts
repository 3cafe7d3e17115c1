import zlib from "node:zlib";
import { WireError } from "../errors/wire-error.js";

/** Largest decompressed body accepted by default. */
export const defaultMaxDecompressedBytes = 256 * 1024 * 1024;

/** The part of a zstd implementation that is used here. */
interface Zstd {
  compress(bytes: Uint8Array): Uint8Array;
  /** Throws when the content is larger than `maxBytes`. */
  decompress(bytes: Uint8Array, maxBytes: number): Uint8Array;
}

/** True where bodies can be compressed. */
export const canCompress: boolean = true;

let loading: Promise<Zstd> | undefined;

/** Compresses into one zstd frame at the default level. */
export async function compressZstd(bytes: Uint8Array): Promise<Uint8Array> {
  return (await zstd()).compress(bytes);
}

/** Decompresses zstd frames; never allocates more than `maxBytes` of content. */
export async function decompressZstd(
  bytes: Uint8Array,
  maxBytes = defaultMaxDecompressedBytes,
): Promise<Uint8Array> {
  const declared = declaredContentSize(bytes);
  if (declared === undefined) throw broken("the data is not a zstd frame");
  if (declared !== null && declared > maxBytes) throw tooLarge(maxBytes);
  const implementation = await zstd();
  return implementation.decompress(bytes, maxBytes);
}

function zstd(): Promise<Zstd> {
  loading ??= "zstdCompressSync" in zlib ? Promise.resolve(builtIn()) : loadWasm();
  return loading;
}

function builtIn(): Zstd {
  type Sync = (bytes: Uint8Array, options?: { maxOutputLength: number }) => Uint8Array;
  const { zstdCompressSync, zstdDecompressSync } = zlib as unknown as Record<string, Sync>;
  return {
    compress: (bytes) => zstdCompressSync!(bytes),
    decompress(bytes, maxBytes) {
      try {
        const content = zstdDecompressSync!(bytes, { maxOutputLength: maxBytes });
        // Node 22 gives what there is of a frame that is cut off.
        if (content.byteLength < (declaredContentSize(bytes) ?? 0))
          throw broken("the zstd data is cut off");
        return content;
      } catch (error) {
        if (error instanceof WireError) throw error;
        if ((error as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE") {
          throw tooLarge(maxBytes);
        }
        throw broken("the zstd data is broken", error);
      }
    },
  };
}

async function loadWasm(): Promise<Zstd> {
  const { init, compress, decompress } = await import("@bokuweb/zstd-wasm");
  await init();
  return {
    compress: (bytes) => compress(bytes),
    decompress(bytes, maxBytes) {
      // Without a declared size the output buffer is a guess that doubles up to the limit.
      const isDeclared = declaredContentSize(bytes) !== null;
      for (let room = Math.min(maxBytes, Math.max(bytes.length * 8, 65_536)); ; room *= 2) {
        const capacity = Math.min(room, maxBytes);
        try {
          return decompress(bytes, { defaultHeapSize: capacity });
        } catch (error) {
          if (isDeclared || !isTooSmall(error)) throw broken("the zstd data is broken", error);
          if (capacity === maxBytes) throw tooLarge(maxBytes);
        }
      }
    },
  };
}

/** libzstd's error number for a destination that is too small, as the wasm build reports it. */
function isTooSmall(error: unknown): boolean {
  return error instanceof Error && error.message.endsWith("-70");
}

/** The content size in a frame's header: null when the header omits it, undefined when this is not a frame. */
function declaredContentSize(bytes: Uint8Array): number | null | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 6 || view.getUint32(0, true) !== 0xfd2fb528) return undefined;
  const descriptor = bytes[4]!;
  const sizeFlag = descriptor >> 6;
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3]!;
  const start = 5 + (isSingleSegment ? 0 : 1) + dictionaryBytes;
  const width = sizeFlag === 0 ? (isSingleSegment ? 1 : 0) : [0, 2, 4, 8][sizeFlag]!;
  if (width === 0) return null;
  if (bytes.length < start + width) return undefined;
  if (width === 1) return view.getUint8(start);
  if (width === 2) return view.getUint16(start, true) + 256;
  if (width === 4) return view.getUint32(start, true);
  return Number(view.getBigUint64(start, true));
}

function broken(problem: string, cause?: unknown): WireError {
  return new WireError("decode", "zstd", "", problem, { cause });
}

function tooLarge(maxBytes: number): WireError {
  return new WireError("decode", "zstd", "", `the content is larger than ${maxBytes} bytes`);
}
