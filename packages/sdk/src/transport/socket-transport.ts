import type { Socket } from "node:net";
import type { Client } from "undici";
import type { Clock } from "../runtime/clock.js";
import { Exchange } from "./exchange.js";
import type { HttpRequest, HttpResponse, Transport } from "./message.js";
import type { Cancellation } from "../runtime/cancellation.js";
import { Semaphore, WaitList } from "../runtime/semaphore.js";

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

/** One undici client: a socket of HTTP/1.1, or of HTTP/2 with many streams. */
export interface PooledConnection {
  readonly client: Client;
  /** Requests it carries at once. */
  capacity: number;
  active: number;
  /** Not open yet, so it is not known how much it will carry. */
  isOpening: boolean;
  /** Lost or about to be closed; never leased again. */
  isDead: boolean;
}

/** How many requests and sockets a pool allows. */
export interface PoolLimits {
  /** Requests that may be sent and not yet be answered or parked. */
  readonly maxFresh: number;
  readonly maxConnections: number;
  /** Whether connections may turn out to carry many requests at once. */
  readonly mayMultiplex: boolean;
}

/** Opens a connection; calls back when it is open, with true for HTTP/2. */
export type OpenConnection = (onOpen: (isMultiplexed: boolean) => void) => Client;

const streamsPerConnection = 100;

/**
 * The connections of one kind of work to one server.
 *
 * - A long poll may wait for a minute, and thousands of them may be open. They must not keep others
 *   from being sent, nor may a burst open thousands of sockets for requests that take a millisecond.
 *   So a small number of *fresh* requests may be under way; one that has waited a while is *parked*:
 *   it keeps its socket but gives its place to the next.
 * - The connection used last is used first, so a burst's surplus goes idle and is closed.
 * - Where HTTP/2 is hoped for, a burst waits for the connection that is being opened instead of opening
 *   one per request; with the first that is not HTTP/2, or fails to open, that hope ends.
 * - undici's own pool looks through all its clients for a free one; with thousands of parked
 *   requests that costs more than the request. Here a free connection is the top of a stack.
 */
export class ConnectionPool {
  readonly #open: OpenConnection;
  readonly #limits: PoolLimits;
  readonly #fresh: Semaphore;
  readonly #waitingForConnection = new WaitList();
  readonly #free: PooledConnection[] = [];
  readonly #all = new Set<PooledConnection>();
  #openingCount = 0;
  #hopesToShare: boolean;

  constructor(open: OpenConnection, limits: PoolLimits) {
    this.#open = open;
    this.#limits = limits;
    this.#fresh = new Semaphore(limits.maxFresh);
    this.#hopesToShare = limits.mayMultiplex;
  }

  /** The right to send at once; undefined when others are in line. */
  tryTake(): Lease | undefined {
    if (!this.#fresh.tryAcquire()) return undefined;
    const connection = this.#pickFree();
    if (connection) return new Lease(connection, this, this.#fresh);
    this.#fresh.release();
    return undefined;
  }

  /** Waits for the right to send; `park` or `giveBack` ends being fresh. */
  take(signal?: Cancellation): Promise<Lease> {
    return this.#fresh.acquire(1, signal).then(() => {
      const connection = this.#pickFree();
      return connection ? new Lease(connection, this, this.#fresh) : this.#takeNextFree(signal);
    });
  }

  async #takeNextFree(signal?: Cancellation): Promise<Lease> {
    try {
      for (;;) {
        await this.#waitingForConnection.wait(signal);
        const connection = this.#pickFree();
        if (connection) return new Lease(connection, this, this.#fresh);
      }
    } catch (error) {
      this.#fresh.release();
      throw error;
    }
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#all].map((connection) => connection.client.destroy()));
  }

  #pickFree(): PooledConnection | undefined {
    let connection = this.#free.at(-1);
    while (connection?.isDead) {
      this.#free.pop();
      connection = this.#free.at(-1);
    }
    connection ??= this.#mayOpen() ? this.#add() : undefined;
    if (!connection) return undefined;
    connection.active++;
    if (connection.active >= connection.capacity) this.#free.pop();
    return connection;
  }

  #mayOpen(): boolean {
    if (this.#hopesToShare && this.#openingCount > 0) return false;
    return this.#all.size < this.#limits.maxConnections;
  }

  #add(): PooledConnection {
    const client = this.#open((isMultiplexed) => this.#onOpen(connection, isMultiplexed));
    const connection: PooledConnection = {
      client,
      capacity: 1,
      active: 0,
      isOpening: true,
      isDead: false,
    };
    client.on("disconnect", () => this.#forget(connection));
    this.#openingCount++;
    this.#all.add(connection);
    this.#free.push(connection);
    return connection;
  }

  #onOpen(connection: PooledConnection, isMultiplexed: boolean): void {
    this.#endOpening(connection, isMultiplexed);
    if (!isMultiplexed || connection.isDead) return;
    const wasFull = connection.active >= connection.capacity;
    connection.capacity = streamsPerConnection;
    if (wasFull) this.#offer(connection);
  }

  /** Requests that waited for it share it, or open their own. */
  #endOpening(connection: PooledConnection, isMultiplexed: boolean): void {
    if (!connection.isOpening) return;
    connection.isOpening = false;
    this.#openingCount--;
    const hoped = this.#hopesToShare;
    this.#hopesToShare = isMultiplexed;
    if (hoped && !isMultiplexed) while (this.#waitingForConnection.wakeFirst());
  }

  /** A request on this connection is over; for leases. */
  giveBack(connection: PooledConnection, isUsable: boolean): void {
    const wasFull = connection.active >= connection.capacity;
    connection.active--;
    if (!isUsable) {
      this.#forget(connection);
    } else if (wasFull && !connection.isDead) {
      this.#offer(connection);
    }
  }

  #offer(connection: PooledConnection): void {
    this.#free.push(connection);
    let room = connection.capacity - connection.active;
    while (room-- > 0 && this.#waitingForConnection.wakeFirst());
  }

  #forget(connection: PooledConnection): void {
    if (connection.isDead) return;
    connection.isDead = true;
    this.#all.delete(connection);
    this.#endOpening(connection, false);
    // Streams of others on the same connection end by themselves; then it goes. One that is gone
    // already has nothing to say.
    const { client, active } = connection;
    (active > 0 ? client.close() : client.destroy()).catch(() => {});
    this.#waitingForConnection.wakeFirst();
  }
}

/** The right to use a connection for one request. */
export class Lease {
  readonly connection: PooledConnection;
  readonly #pool: ConnectionPool;
  readonly #fresh: Semaphore;
  #isFresh = true;

  constructor(connection: PooledConnection, pool: ConnectionPool, fresh: Semaphore) {
    this.connection = connection;
    this.#pool = pool;
    this.#fresh = fresh;
  }

  /** The request has waited a while: let another one be sent. */
  park(): void {
    if (!this.#isFresh) return;
    this.#isFresh = false;
    this.#fresh.release();
  }

  /** The request is over; a connection that is not usable any more is closed. */
  giveBack(isUsable: boolean): void {
    this.park();
    this.#pool.giveBack(this.connection, isUsable);
  }
}
