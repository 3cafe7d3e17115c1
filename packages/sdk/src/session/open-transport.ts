import { localBaseUrl, parseBaseUrl, type BaseUrl } from "../transport/base-url.js";
import { withDecompression } from "../transport/decompression.js";
import { withEmptyBadRequestAsConnectionError } from "../transport/empty-bad-request.js";
import { openFetchTransport, type FetchHandler } from "../transport/fetch-transport.js";
import type { Transport } from "../transport/message.js";
import { withRedirects } from "../transport/redirects.js";
import { openSocketTransport } from "../transport/socket-transport.js";
import type { ConnectionPlan } from "./connection-plan.js";
import { joinLocalServer } from "./local-server.js";

/** The engine of this process has no address; this one stands for it in requests and errors. */
const localAddress: BaseUrl = { origin: "http://local.invalid", prefix: "" };

/** A way to a server. */
export interface OpenedTransport extends Transport {
  readonly baseUrl: BaseUrl;
  /** Answers in place of the network, where something does. */
  readonly handler: FetchHandler | undefined;
}

/** Opens the way to the server: sockets, a handler, or the engine of this process. */
export async function openTransport(plan: ConnectionPlan): Promise<OpenedTransport> {
  const { options, baseUrl, runtime } = plan;
  if (baseUrl === localBaseUrl) {
    const server = await joinLocalServer();
    const transport = openFetchTransport(server.fetch, runtime.clock);
    const close = async (): Promise<void> => {
      await transport.close();
      await server.close();
    };
    return layered({ send: transport.send, close }, localAddress, server.fetch);
  }
  const transport = options.fetch
    ? openFetchTransport(options.fetch, runtime.clock)
    : openSocketTransport(runtime.clock, options.sockets);
  return layered(transport, parseBaseUrl(baseUrl), options.fetch);
}

// From the socket outwards: a proxy's empty 400, then compression, then redirects.
function layered(
  { send, close }: Transport,
  baseUrl: BaseUrl,
  handler: FetchHandler | undefined,
): OpenedTransport {
  const layers = withRedirects(withDecompression(withEmptyBadRequestAsConnectionError(send)));
  return { send: layers, close, baseUrl, handler };
}
