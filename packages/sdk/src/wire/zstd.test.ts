import { expect, it } from "vitest";
import { WireError } from "../errors/wire-error.js";
import { compressZstd, decompressZstd } from "./zstd.js";

const content = Uint8Array.from({ length: 200_000 }, (_, index) => (index * index) % 251);

// One frame of 300 zero bytes as a streaming compressor writes it: without its content size.
const streamedFrame = Buffer.from("KLUv/QRYTQAAEAAAAQAnKsACkOoAOg==", "base64");

it("round-trips data", async () => {
  const frame = await compressZstd(content);
  expect(frame.length).toBeLessThan(content.length / 10);
  expect(Buffer.compare(await decompressZstd(frame), content)).toBe(0);
});

it("refuses content beyond the limit before producing it", async () => {
  const frame = await compressZstd(content);
  await expect(decompressZstd(frame, content.length - 1)).rejects.toThrow("larger than 199999");
  await expect(decompressZstd(frame, content.length)).resolves.toHaveLength(content.length);
});

it("refuses data that is not zstd or is cut off", async () => {
  const frame = await compressZstd(content);
  for (const bad of [new Uint8Array(), content, frame.subarray(0, 5), frame.subarray(0, -3)]) {
    await expect(decompressZstd(bad)).rejects.toBeInstanceOf(WireError);
  }
});

it("handles frames without a size, within the limit", async () => {
  const decompressed = await decompressZstd(streamedFrame);
  expect(decompressed).toHaveLength(300);
  await expect(decompressZstd(streamedFrame, 200)).rejects.toThrow("larger than 200");
});
