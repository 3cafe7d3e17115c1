import type { Clock } from "../runtime/clock.js";
import { openFetchTransport } from "./fetch-transport.js";
import type { Transport } from "./message.js";

/** Opens the way to the network through `fetch`, which is all that a browser has. */
export function openNetwork(clock: Clock, _options: unknown): Transport {
  return openFetchTransport((request) => fetch(request), clock);
}
