import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

/** A server in front of another that stops in the middle of its first streamed answer. */
export async function startHolding(url: string): Promise<{
  readonly url: string;
  /** The first answer has started and is held. */
  readonly held: Promise<void>;
  /** The client of the held answer has disconnected. */
  readonly left: Promise<void>;
  stop(): Promise<void>;
}> {
  const { port } = new URL(url);
  let hold = (): void => {};
  let leave = (): void => {};
  const held = new Promise<void>((resolve) => (hold = resolve));
  const left = new Promise<void>((resolve) => (leave = resolve));
  let isFirst = true;
  const proxy = createServer((incoming, response) => {
    const { method, headers, url: path = "" } = incoming;
    const holds = isFirst && path.startsWith("/api/v1/stream_sample");
    if (holds) isFirst = false;
    const outgoing = request({ host: "127.0.0.1", port, path, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      if (!holds) return void answer.pipe(response);
      answer.once("data", (piece: Uint8Array) => {
        answer.pause();
        response.write(piece, () => hold());
      });
      response.once("close", () => {
        outgoing.destroy();
        leave();
      });
    });
    outgoing.on("error", () => response.destroy());
    incoming.pipe(outgoing);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    held,
    left,
    stop: () => {
      proxy.closeAllConnections();
      return new Promise((resolve) => proxy.close(() => resolve()));
    },
  };
}
