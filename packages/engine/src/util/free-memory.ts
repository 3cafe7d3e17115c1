import { MessageChannel } from "node:worker_threads";

/**
 * Gives the memory of buffers back at once; arrays in them are empty afterwards. The collector would come for them some time
 * later, and not at all while it is native code that takes memory. What is sent to a closed port is dropped on the spot.
 */
export function freeMemory(buffers: Iterable<ArrayBufferLike>): void {
  const { port1, port2 } = new MessageChannel();
  port2.close();
  for (const buffer of new Set(buffers)) {
    if (buffer instanceof ArrayBuffer && buffer.byteLength > 0) port1.postMessage(null, [buffer]);
  }
  port1.close();
}
