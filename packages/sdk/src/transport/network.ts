import { platform } from "../runtime/platform.js";
import type { Clock } from "../runtime/clock.js";
import { openFetchTransport } from "./fetch-transport.js";
import type { Transport } from "./message.js";
import { openSocketTransport, type Locate, type SocketOptions } from "./socket-transport.js";

/*
 * The one place that chooses between sockets (undici) and `fetch`. Bundles for browsers put
 * network.browser.ts in its place and never see undici.
 */

/**
 * Opens the way to the network: over sockets of its own where they work, else through `fetch`. `locate` returns the
 * address of a host that has no fixed one.
 */
export function openNetwork(
  clock: Clock,
  options: SocketOptions | undefined,
  locate?: Locate,
): Transport {
  if (platform.runtime === "node" || platform.runtime === "deno") {
    return openSocketTransport(clock, options, locate);
  }
  return openFetchTransport(async (request) => {
    const { origin, hostname } = new URL(request.url);
    const located = await locate?.(hostname);
    if (located === undefined) return fetch(request);
    return fetch(new Request(located + request.url.slice(origin.length), request));
  }, clock);
}
