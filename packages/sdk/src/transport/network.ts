import { platform } from "../runtime/platform.js";
import type { Clock } from "../runtime/clock.js";
import { openFetchTransport } from "./fetch-transport.js";
import type { Transport } from "./message.js";
import { openSocketTransport, type SocketOptions } from "./socket-transport.js";

/*
 * The one place that chooses between sockets (undici) and `fetch`. Bundles for browsers put
 * network.browser.ts in its place and never see undici.
 */

/** Opens the way to the network: over sockets of its own where they work, else through `fetch`. */
export function openNetwork(clock: Clock, options: SocketOptions | undefined): Transport {
  if (platform.runtime === "node" || platform.runtime === "deno") {
    return openSocketTransport(clock, options);
  }
  return openFetchTransport((request) => fetch(request), clock);
}
