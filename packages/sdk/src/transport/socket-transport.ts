import type { Socket } from "node:net";
import type { Client } from "undici";
import type { Clock } from "../runtime/clock.js";
import { ConnectionPool } from "./connection-pool.js";
import { Exchange } from "./exchange.js";
import type { HttpRequest, HttpResponse, Transport } from "./message.js";

/** How sockets are opened. */
export interface SocketOptions {
  /**
   * Longest wait for a connection.
   * @default 5000
   */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * How long an idle connection stays open.
   * @default 4000
   */
  readonly keepAliveMs?: number | undefined;
  /**
   * Most connections per kind of work.
   * @default 4096
   */
  readonly maxConnections?: number | undefined;
  /**
   * Offers HTTP/2 to https servers, so that many requests share one connection.
   * @default false
   */
  readonly http2?: boolean | undefined;
  /** Certificate authorities to trust in place of the usual ones, in PEM form. */
  readonly ca?: string | undefined;
}

/** The origin at which a host is found now; undefined for hosts that have an address. */
export type Locate = (hostname: string) => Promise<string> | undefined;

const maxFresh = 64;

/**
 * Sends over sockets, with connections of their own for every kind of work and for background work.
 * undici is loaded with the first request, so a program that makes none does not pay for it.
 */
export function openSocketTransport(
  clock: Clock,
  options: SocketOptions = {},
  locate: Locate = () => undefined,
): Transport {
  const { maxConnections = 4096, http2 = false } = options;
  const limits = { maxFresh, maxConnections, mayMultiplex: http2 };
  const pools = { foreground: new PoolsByOrigin(), background: new PoolsByOrigin() };
  let loading: Promise<ClientFactory> | undefined;
  let openClient: ClientFactory | undefined;

  const poolFor = (open: ClientFactory, request: HttpRequest): ConnectionPool => {
    const { origin, pool: name, isBackground } = request;
    const byOrigin = pools[isBackground ? "background" : "foreground"];
    const known = byOrigin.get(origin, name);
    if (known) return known;
    const where = { origin, isBackground };
    const opened = new ConnectionPool((onOpen) => open(where, onOpen), limits);
    byOrigin.add(origin, name, opened);
    return opened;
  };

  const send = async (request: HttpRequest): Promise<HttpResponse> => {
    const { signal } = request;
    signal?.throwIfAborted();
    // Waiting for what is there would let a later request overtake this one.
    if (!openClient) openClient = await (loading ??= loadClientFactory(options, locate));
    const pool = poolFor(openClient, request);
    const lease = pool.tryTake() ?? (await pool.take(signal));
    if (signal?.aborted) {
      lease.giveBack(true);
      throw signal.reason;
    }
    return new Exchange(request, lease, clock).start();
  };

  return {
    send,
    close: async () => {
      await Promise.all([pools.foreground.destroy(), pools.background.destroy()]);
    },
  };
}

/** A pool for each kind of work at each server. Nested, because building a key costs every request. */
class PoolsByOrigin {
  readonly #origins = new Map<string, Map<string, ConnectionPool>>();

  get(origin: string, name: string): ConnectionPool | undefined {
    return this.#origins.get(origin)?.get(name);
  }

  add(origin: string, name: string, pool: ConnectionPool): void {
    const pools = this.#origins.get(origin) ?? new Map<string, ConnectionPool>();
    this.#origins.set(origin, pools);
    pools.set(name, pool);
  }

  async destroy(): Promise<void> {
    const pools = [...this.#origins.values()].flatMap((byName) => [...byName.values()]);
    await Promise.all(pools.map((pool) => pool.destroy()));
  }
}

type ClientFactory = (
  where: Pick<HttpRequest, "origin" | "isBackground">,
  onOpen: (isMultiplexed: boolean) => void,
) => Client;

async function loadClientFactory(options: SocketOptions, locate: Locate): Promise<ClientFactory> {
  const { buildConnector, Client } = await import("undici");
  const { http2 = false, ca, connectTimeoutMs = 5_000, keepAliveMs = 4_000 } = options;
  const connect = buildConnector({
    allowH2: http2,
    timeout: connectTimeoutMs,
    ...(ca === undefined ? {} : { ca }),
  });
  return ({ origin, isBackground }, onOpen) =>
    new Client(origin, {
      allowH2: http2,
      keepAliveTimeout: keepAliveMs,
      connect: (target, callback) => {
        const open = (where: typeof target): void => {
          const socket = connect(where, (...[error, connected]) => {
            if (error) return callback(error, null);
            onOpen("alpnProtocol" in connected && connected.alpnProtocol === "h2");
            return callback(null, connected);
          }) as unknown as Socket;
          if (isBackground) keepDetached(socket);
        };
        const located = locate(target.hostname);
        if (located === undefined) return open(target);
        located.then(
          (found) => {
            const { hostname, host, port } = new URL(found);
            open({ ...target, hostname, host, port });
          },
          (error: unknown) => callback(error as Error, null),
        );
      },
    });
}

/** undici holds the process while a request is under way; for background work nothing may. */
function keepDetached(socket: Socket): void {
  socket.unref();
  socket.ref = () => socket;
}
