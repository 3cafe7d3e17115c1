import { Api } from "../transport/api.js";
import { withCredential } from "../transport/authentication.js";
import { defaultHeaders } from "../transport/default-headers.js";
import type { CredentialProvider } from "../transport/resolve-credential.js";
import type { ConnectionPlan } from "./connection-plan.js";
import type { OpenedTransport } from "./open-transport.js";

/** The endpoints of a server over an open way to it, for whoever the provider says. */
export function openApi(
  { options, runtime, timeoutMs, maxRetries }: ConnectionPlan,
  { send, baseUrl }: OpenedTransport,
  provider: CredentialProvider,
): Api {
  return new Api(withCredential(send, provider), {
    baseUrl,
    headers: defaultHeaders(runtime.env, options.defaultHeaders),
    query: options.defaultQuery ?? {},
    timeoutMs,
    maxRetries,
    runtime,
  });
}
