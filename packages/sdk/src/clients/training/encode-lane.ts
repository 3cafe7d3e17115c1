import type { Cancellation } from "../../runtime/cancellation.js";
import { Semaphore } from "../../runtime/semaphore.js";
import { serveEvents } from "../../runtime/serve-events.js";
import type { EncodedPass } from "./encode-pass.js";

/*
 * Encoding a chunk takes some milliseconds of this thread. Many chunks in one go would hold up
 * everything else for as long as all of them take, so they are encoded one after the other with a
 * round of the event loop in between.
 */
const lane = new Semaphore(1);

/** Copying a body of this size takes no time that anybody would notice. */
const smallBytes = 64 * 1024;

/** Runs `encode` when no other encoding runs and events that waited meanwhile have been served. */
export async function inEncodeLane(
  encode: () => Promise<EncodedPass>,
  signal?: Cancellation,
): Promise<EncodedPass> {
  const isFirst = lane.tryAcquire();
  if (!isFirst) await lane.acquire(signal);
  try {
    if (!isFirst) await serveEvents();
    const encoded = await encode();
    // Sending copies the whole body once more; that is a slice of its own.
    if (encoded.body.content.length > smallBytes) await serveEvents();
    return encoded;
  } finally {
    lane.release();
  }
}
