import { parseBaseUrl, type BaseUrl } from "../transport/base-url.js";
import { Api } from "../transport/api.js";
import { defaultHeaders } from "../transport/default-headers.js";
import { openFetchTransport } from "../transport/fetch-transport.js";
import type { Send, Transport } from "../transport/message.js";
import { openNetwork } from "../transport/network.js";
import type { CredentialSource } from "../transport/credentials.js";
import type { CredentialProvider } from "../transport/resolve-credential.js";
import { withReadyResponses } from "../transport/responses.js";
import type { ConnectionPlan } from "./connection-plan.js";
import { findSharedServer, openInsideServer, type LocalPlace } from "./local-server.js";

/** Local servers have no fixed address; requests and errors show this one. */
const localAddress: BaseUrl = { origin: "http://local.invalid", prefix: "" };

/** A way to a server. */
export interface OpenedTransport extends Transport {
  readonly baseUrl: BaseUrl;
  /** Whether requests are answered inside this process or by the caller, and not over the network. */
  readonly isInside: boolean;
  /** What a server of this machine wants in place of the user's credential. */
  readonly credential?: CredentialSource;
  /** Where a browser finds the server, when that is not the base URL. */
  readonly address?: string;
  /** The name of a model as the server understands it. @default the name itself */
  readonly nameModel?: (model: string) => string;
}

/** Opens the way to the server: sockets, a handler, the engine of this process, or the shared local server. */
export async function openTransport(plan: ConnectionPlan): Promise<OpenedTransport> {
  const { options, baseUrl, runtime } = plan;
  const { clock } = runtime;
  if (plan.local && !plan.local.isInProcess) return openShared(plan, plan.local);
  if (plan.local) {
    const server = await openInsideServer(plan.local);
    const local = openFetchTransport(server.fetch, clock);
    const network = openNetwork(clock, options.sockets);
    const close = async (): Promise<void> => {
      await Promise.all([local.close(), network.close()]);
      await server.close();
    };
    // The engine of this process answers for its own addresses alone.
    const send: Send = (request) =>
      (request.origin === localAddress.origin ? local : network).send(request);
    return { send: withReadyResponses(send), close, baseUrl: localAddress, isInside: true };
  }
  const transport = options.fetch
    ? openFetchTransport(options.fetch, clock)
    : openNetwork(clock, options.sockets);
  return {
    send: withReadyResponses(transport.send),
    close: transport.close,
    baseUrl: parseBaseUrl(baseUrl),
    isInside: options.fetch !== undefined,
  };
}

/** The way to the server that programs of a data directory share, wherever it listens at the moment. */
async function openShared(plan: ConnectionPlan, place: LocalPlace): Promise<OpenedTransport> {
  const { options, runtime } = plan;
  const shared = await findSharedServer(place, runtime.env);
  const { url, key } = await shared.find();
  const hostname = new URL(localAddress.origin).hostname;
  const locate = (host: string): Promise<string> | undefined =>
    host === hostname ? shared.find().then((server) => server.url) : undefined;
  const transport = openNetwork(runtime.clock, options.sockets, locate);
  return {
    send: withReadyResponses(transport.send),
    close: transport.close,
    baseUrl: localAddress,
    isInside: false,
    credential: { key: key ?? undefined, command: undefined, isRequired: false },
    address: url,
    nameModel: shared.nameModel,
  };
}

/** The endpoints of a server over an open transport, with the credential of a provider. */
export function openApi(
  { options, runtime, timeoutMs, maxRetries }: ConnectionPlan,
  { send, baseUrl }: OpenedTransport,
  credential: CredentialProvider,
): Api {
  return new Api(send, {
    baseUrl,
    headers: defaultHeaders(runtime.env, options.defaultHeaders),
    query: options.defaultQuery ?? {},
    timeoutMs,
    maxRetries,
    runtime,
    credential,
  });
}
