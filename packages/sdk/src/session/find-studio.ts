import { APIStatusError } from "../errors/api-error.js";
import type { HttpResponse } from "../transport/message.js";
import { resolveCredential } from "../transport/resolve-credential.js";
import type { Route } from "../wire/routes.js";
import { studioRoutes } from "../wire/studio-routes.js";
import type { StudioCode, StudioHello } from "../wire/studio.js";
import type { ConnectionPlan } from "./connection-plan.js";
import { openApi, openTransport } from "./open-transport.js";

const once = {
  request: null,
  response: null,
  pool: "session",
  retry: "outer",
  timeoutMs: 10_000,
} as const;
const helloRoute: Route = { ...once, ...studioRoutes.hello };
const codeRoute: Route = { ...once, ...studioRoutes.code };

/**
 * The address of a server's studio; null for a server that has none. Where the studio wants a login and a credential
 * is at hand, the address carries a code that logs in once.
 */
export async function findStudio(
  plan: ConnectionPlan,
  signal: AbortSignal,
): Promise<string | null> {
  // The engine of this process has no address.
  if (plan.local?.isInProcess) return null;
  const transport = await openTransport(plan);
  try {
    const { origin, prefix } = transport.baseUrl;
    const address = `${transport.address ?? origin}${prefix}/studio`;
    const credential = transport.credential ?? plan.credential;
    // Asked as the page will ask: without a credential.
    const stranger = openApi(plan, transport, () => undefined);
    const hello = await stranger.exchangeAt(helloRoute, "studioHello", null, { signal }).then(
      (response) => readJson<StudioHello>(response),
      (error: unknown) => {
        if (error instanceof APIStatusError) return undefined;
        throw error;
      },
    );
    if (typeof hello?.version !== "string") return null;
    const { key, command } = credential;
    if (!hello.needsLogin || !(key ?? command)) return address;
    const provider = resolveCredential(credential, { enforceCommand: false });
    const owner = openApi(plan, transport, provider);
    const headers = { "x-tinker-studio": "1" };
    const answer = await owner.exchangeAt(codeRoute, "studioCode", null, { signal, headers });
    return `${address}#code=${readJson<StudioCode>(answer)?.code}`;
  } finally {
    await transport.close();
  }
}

function readJson<T>({ body }: HttpResponse): Partial<T> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body));
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
