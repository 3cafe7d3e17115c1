import { notInBrowser } from "../errors/not-in-browser.js";

/*
 * Takes the place of zstd.ts in bundles for browsers: an implementation would be larger than the client.
 */

/** Bodies are sent as they are. */
export const canCompress = false;

/** Refuses. */
export async function compressZstd(_bytes: Uint8Array): Promise<Uint8Array> {
  throw notInBrowser("zstd", "send bodies as they are");
}
