import { MessageChannel } from "node:worker_threads";

/**
 * Frees the memory of buffers at once; arrays in them are empty afterwards. The garbage collector would free them later,
 * and not at all while only native code allocates. Messages to a closed port are dropped at once.
 */
export function freeMemory(buffers: Iterable<ArrayBufferLike>): void {
  const { port1, port2 } = new MessageChannel();
  port2.close();
  for (const buffer of new Set(buffers)) {
    if (buffer instanceof ArrayBuffer && buffer.byteLength > 0) port1.postMessage(null, [buffer]);
  }
  port1.close();
}
