import { localBaseUrl, parseBaseUrl, type BaseUrl } from "../transport/base-url.js";
import { decompress } from "../transport/decompression.js";
import { emptyBadRequestAsConnectionError } from "../transport/empty-bad-request.js";
import { openFetchTransport } from "../transport/fetch-transport.js";
import type { Inspect, Send, Transport } from "../transport/message.js";
import { openNetwork } from "../transport/network.js";
import { withRedirects } from "../transport/redirects.js";
import type { ConnectionPlan } from "./connection-plan.js";
import { joinLocalServer } from "./local-server.js";

/** The engine of this process has no address; this one stands for it in requests and errors. */
const localAddress: BaseUrl = { origin: "http://local.invalid", prefix: "" };

/** A way to a server. */
export interface OpenedTransport extends Transport {
  readonly baseUrl: BaseUrl;
  /** Whether requests are answered inside this process or by the caller, and not over the network. */
  readonly isInside: boolean;
}

/** Opens the way to the server: sockets, a handler, or the engine of this process. */
export async function openTransport(plan: ConnectionPlan): Promise<OpenedTransport> {
  const { options, baseUrl, runtime } = plan;
  const { clock } = runtime;
  if (baseUrl === localBaseUrl) {
    const server = await joinLocalServer();
    const local = openFetchTransport(server.fetch, clock);
    const network = openNetwork(clock, options.sockets);
    const close = async (): Promise<void> => {
      await Promise.all([local.close(), network.close()]);
      await server.close();
    };
    // The engine of this process answers for its own addresses alone.
    const send: Send = (request) =>
      (request.origin === localAddress.origin ? local : network).send(request);
    return { ...layered({ send, close }), baseUrl: localAddress, isInside: true };
  }
  const transport = options.fetch
    ? openFetchTransport(options.fetch, clock)
    : openNetwork(clock, options.sockets);
  return {
    ...layered(transport),
    baseUrl: parseBaseUrl(baseUrl),
    isInside: options.fetch !== undefined,
  };
}

// From the socket outwards: a proxy's empty 400, then compression, then redirects.
function layered({ send, close }: Transport): Transport {
  const refuseEmpty = emptyBadRequestAsConnectionError();
  const inspect: Inspect = (response, request) =>
    decompress(refuseEmpty(response, request), request);
  return { send: withRedirects(send, inspect), close };
}
