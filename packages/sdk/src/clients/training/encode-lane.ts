import type { Cancellation } from "../../runtime/cancellation.js";
import { Semaphore } from "../../runtime/semaphore.js";
import { serveEvents } from "../../runtime/serve-events.js";

/*
 * Encoding a chunk takes some milliseconds of this thread. Many chunks in one go would hold up
 * everything else for as long as all of them take, so they are encoded one after the other with a
 * round of the event loop in between.
 */
const lane = new Semaphore(1);

/** Runs `encode` when no other encoding runs and waiting events have been served. */
export async function inEncodeLane<T>(encode: () => Promise<T>, signal?: Cancellation): Promise<T> {
  await lane.acquire(signal);
  try {
    await serveEvents();
    const encoded = await encode();
    // Sending copies the whole body once more; that is a slice of its own.
    await serveEvents();
    return encoded;
  } finally {
    lane.release();
  }
}
