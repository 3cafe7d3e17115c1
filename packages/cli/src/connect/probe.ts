import { connect } from "node:net";
import { CliError } from "../errors/cli-error.js";

const timeoutMs = 5_000;

/**
 * Checks that a server listens. Clients wait minutes for a server that went away during their work; a mistyped address
 * should be an error at once.
 */
export async function probe(baseUrl: string, signal: AbortSignal): Promise<void> {
  const { hostname, port, protocol } = parse(baseUrl);
  const problem = await new Promise<string | undefined>((resolve) => {
    const host = hostname.replace(/^\[|\]$/g, "");
    const socket = connect({ host, port: Number(port || (protocol === "https:" ? 443 : 80)) });
    const finish = (result: string | undefined): void => {
      signal.removeEventListener("abort", onAbort);
      socket.destroy();
      resolve(result);
    };
    const onAbort = (): void => finish("interrupted");
    signal.addEventListener("abort", onAbort, { once: true });
    socket.setTimeout(timeoutMs, () => finish(`no answer within ${timeoutMs / 1000} s`));
    socket.once("connect", () => finish(undefined));
    socket.once("error", (error) => finish(error.message));
  });
  signal.throwIfAborted();
  if (problem === undefined) return;
  throw new CliError(
    "Connection failed",
    `Cannot reach ${baseUrl}: ${problem}. Check --base-url, or start a server with 'tinker-ts serve'.`,
  );
}

function parse(baseUrl: string): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url && (url.protocol === "http:" || url.protocol === "https:") && url.hostname) return url;
  throw new CliError(
    `--base-url: ${JSON.stringify(baseUrl)} is not an address.`,
    'Write http://HOST:PORT, https://HOST, or "local:" for the engine on this machine.',
  );
}
