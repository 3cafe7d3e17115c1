import type { CommandContext } from "../command.js";
import { hostedBaseUrl } from "../connect/target.js";
import { CliError } from "../errors/cli-error.js";

const timeoutMs = 30_000;

/** A key as its server describes it. */
export interface KeyDescription {
  readonly id: string;
  readonly name: string;
  readonly note: string | null;
  /** The owner, as the server describes it. */
  readonly details: unknown;
  readonly email: string | null;
}

/** The server that commands about keys go to. */
export function keyServer({ globals, terminal }: CommandContext): string {
  const baseUrl = globals.baseUrl ?? (terminal.env["TINKER_BASE_URL"] || hostedBaseUrl);
  if (!baseUrl.startsWith("local:")) return baseUrl.replace(/\/+$/, "");
  throw new CliError("local: needs no key.", "Name the address of a server with --base-url.");
}

/** Asks a server about a key, with the key itself and not with a token in its place. */
export async function describeKey(context: CommandContext, key: string): Promise<KeyDescription> {
  const response = await send(context, "GET", key);
  if (response.status === 404) {
    throw new CliError(
      "This server does not describe keys, so that none can be checked.",
      "Set TINKER_API_KEY, or pass --api-key.",
    );
  }
  if (!response.ok) {
    throw new CliError("The server does not take this key.", `It answered ${response.status}.`);
  }
  const { key_id, name, note, details } = (await response.json().catch(() => ({}))) as {
    readonly key_id?: number;
    readonly name?: string;
    readonly note?: string | null;
    readonly details?: {
      readonly org_details?: { readonly name?: string | null } | null;
      readonly user_details?: { readonly email?: string | null } | null;
    };
  };
  if (key_id === undefined || name === undefined) {
    throw new CliError("The server's answer describes no key.", "Check --base-url.");
  }
  const email = details?.user_details?.email ?? null;
  // The Python program wants both names to be texts.
  const owner = {
    org_details: { name: details?.org_details?.name ?? "" },
    user_details: { email: email ?? "" },
  };
  return { id: String(key_id), name, note: note ?? null, details: owner, email };
}

/** Deletes a key at the server; returns what kept it from that, undefined when it is gone. */
export async function deleteKey(context: CommandContext, key: string): Promise<string | undefined> {
  try {
    const { ok, status } = await send(context, "DELETE", key);
    return ok ? undefined : `it answered ${status}`;
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return error.detail;
  }
}

async function send(
  context: CommandContext,
  method: "GET" | "DELETE",
  key: string,
): Promise<Response> {
  const { globals, signal } = context;
  const address = `${keyServer(context)}/api/v1/auth/apikey/me`;
  const limit = AbortSignal.timeout(globals.timeout ?? timeoutMs);
  try {
    return await fetch(address, {
      method,
      headers: { "x-api-key": key },
      // Another address must not get the key.
      redirect: "error",
      signal: AbortSignal.any([signal, limit]),
    });
  } catch (error) {
    signal.throwIfAborted();
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    throw new CliError("Connection failed", cause instanceof Error ? cause.message : String(cause));
  }
}
