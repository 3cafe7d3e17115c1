import http from "node:http";
import type { AddressInfo } from "node:net";

/** What can go wrong on the way, each as often as the others. */
const faults = [
  "reset before",
  "reset after",
  "truncate",
  "status 408",
  "status 429",
  "status 500",
  "status 503",
  "duplicate",
  "delay",
] as const;

/** How a proxy misbehaves. */
export interface FaultyProxyOptions {
  /** The share of requests that something happens to. */
  readonly faultRate: number;
  readonly random: () => number;
  readonly targetPort: () => number;
}

/** A proxy between client and server on which a share of the requests comes to grief. */
export class FaultyProxy {
  readonly #options: FaultyProxyOptions;
  readonly #server: http.Server;
  /** How often each fault happened. */
  readonly counts = new Map<string, number>();
  #handedOn = 0;
  #waiting: (() => void)[] = [];

  constructor(options: FaultyProxyOptions) {
    this.#options = options;
    this.#server = http.createServer((request, response) => {
      this.#handle(request, response).catch(() => response.destroy());
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, "127.0.0.1", resolve);
    });
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }

  /** Resolves when so many more requests have been handed on, or with the signal. */
  async afterRequests(count: number, signal: AbortSignal): Promise<void> {
    const target = this.#handedOn + count;
    const wake = (): void => {
      for (const go of this.#waiting.splice(0)) go();
    };
    signal.addEventListener("abort", wake);
    while (this.#handedOn < target && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
    signal.removeEventListener("abort", wake);
  }

  async #handle(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts);
    const fault = this.#pickFault();
    if (fault === "reset before") {
      response.destroy();
      return;
    }
    if (fault?.startsWith("status")) {
      const text = '{"error":"a fault on the way"}';
      const headers = { "content-type": "application/json", "content-length": text.length };
      response.writeHead(Number(fault.slice(-3)), headers).end(text);
      return;
    }
    if (fault === "delay") {
      await new Promise((resolve) => setTimeout(resolve, this.#options.random() * 100));
    }
    if (fault === "duplicate") await this.#forward(request, body).catch(() => {});
    const answer = await this.#forward(request, body);
    if (fault === "reset after") {
      response.destroy();
      return;
    }
    response.writeHead(answer.status, answer.headers);
    if (fault === "truncate" && answer.body.length > 1) {
      response.write(answer.body.subarray(0, answer.body.length / 2), () => response.destroy());
      return;
    }
    response.end(answer.body);
  }

  #pickFault(): (typeof faults)[number] | undefined {
    const { random, faultRate } = this.#options;
    if (random() >= faultRate) return undefined;
    const fault = faults[Math.floor(random() * faults.length)]!;
    this.counts.set(fault, (this.counts.get(fault) ?? 0) + 1);
    return fault;
  }

  #forward(request: http.IncomingMessage, body: Buffer) {
    type Answer = { status: number; headers: http.IncomingHttpHeaders; body: Buffer };
    return new Promise<Answer>((resolve, reject) => {
      const { method, url: path, headers } = request;
      const options = { method, path, headers, port: this.#options.targetPort() };
      const outgoing = http.request({ host: "127.0.0.1", ...options }, (incoming) => {
        const parts: Buffer[] = [];
        incoming.on("data", (part: Buffer) => parts.push(part));
        incoming.on("error", reject);
        incoming.on("aborted", () => reject(new Error("the server went away")));
        incoming.on("end", () => {
          const { statusCode = 502, headers: answered } = incoming;
          resolve({ status: statusCode, headers: answered, body: Buffer.concat(parts) });
        });
      });
      outgoing.on("error", reject);
      outgoing.end(body, () => {
        this.#handedOn++;
        for (const go of this.#waiting.splice(0)) go();
      });
    });
  }
}
