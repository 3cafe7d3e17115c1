import type { Socket } from "node:net";
import type { Client } from "undici";
import type { Clock } from "../runtime/clock.js";
import { ConnectionPool } from "./connection-pool.js";
import { isEmptyBadRequest } from "./empty-bad-request.js";
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

const maxFresh = 64;

/**
 * Sends over sockets, with connections of their own for every kind of work and for background work.
 * undici is loaded with the first request, so a program that makes none does not pay for it.
 */
export function openSocketTransport(clock: Clock, options: SocketOptions = {}): Transport {
  const { maxConnections = 4096, http2 = false } = options;
  const limits = { maxFresh, maxConnections, mayMultiplex: http2 };
  const pools = new Map<string, ConnectionPool>();
  let opening: Promise<ClientFactory> | undefined;
  let openClient: ClientFactory | undefined;

  const poolFor = (open: ClientFactory, request: HttpRequest): ConnectionPool => {
    const key = `${request.origin} ${request.pool} ${request.isBackground}`;
    let pool = pools.get(key);
    if (!pool) {
      pool = new ConnectionPool((onOpen) => open(request, onOpen), limits);
      pools.set(key, pool);
    }
    return pool;
  };

  const send = async (request: HttpRequest): Promise<HttpResponse> => {
    request.signal?.throwIfAborted();
    openClient ??= await (opening ??= loadClientFactory(options));
    const pool = poolFor(openClient, request);
    const lease = pool.tryTake() ?? (await pool.take(request.signal));
    if (request.signal?.aborted) {
      lease.giveBack(true);
      throw request.signal.reason;
    }
    const exchange = new Exchange(request, lease, clock, isUsableAfter);
    exchange.start();
    return exchange.answer;
  };

  return {
    send,
    close: async () => {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()));
    },
  };
}

/** A proxy that answers 400 without a body rejects the connection, not the request. */
function isUsableAfter(response: HttpResponse): boolean {
  return !isEmptyBadRequest(response);
}

type ClientFactory = (request: HttpRequest, onOpen: (isMultiplexed: boolean) => void) => Client;

async function loadClientFactory(options: SocketOptions): Promise<ClientFactory> {
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
        const socket = connect(target, (...[error, connected]) => {
          if (error) return callback(error, null);
          onOpen("alpnProtocol" in connected && connected.alpnProtocol === "h2");
          return callback(null, connected);
        }) as unknown as Socket;
        if (isBackground) keepDetached(socket);
      },
    });
}

/** undici holds the process while a request is under way; for background work nothing may. */
function keepDetached(socket: Socket): void {
  socket.unref();
  socket.ref = () => socket;
}
