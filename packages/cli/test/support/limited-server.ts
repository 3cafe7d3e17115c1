import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

/** A server in front of another without some endpoints, like servers of others. */
export async function startLimited(
  url: string,
  unknownPaths: readonly string[],
): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const { port } = new URL(url);
  const proxy = createServer((incoming, response) => {
    const { method, headers, url: path = "" } = incoming;
    if (unknownPaths.some((prefix) => path.startsWith(prefix))) {
      response.writeHead(404).end();
      return;
    }
    const options = { host: "127.0.0.1", port, path, method, headers };
    const outgoing = request(options, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(outgoing);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    stop: () => {
      proxy.closeAllConnections();
      return new Promise((resolve) => proxy.close(() => resolve()));
    },
  };
}
