import { CancelledError } from "../errors/tinker-error.js";
import type { Runtime } from "../runtime/runtime.js";
import { Semaphore } from "../runtime/semaphore.js";
import type { TelemetrySink } from "../telemetry/sink.js";
import type { Api, CallOptions, RequestOf, ResponseOf } from "../transport/api.js";
import type { BaseUrl } from "../transport/base-url.js";
import type { Send } from "../transport/message.js";
import type { CallHost } from "../transport/retry.js";
import type { TokenExchange } from "../transport/token-exchange.js";
import type { ClientConfigResponse, ClientDynamicConfigResponse } from "../types/service.js";
import type { RouteName } from "../wire/routes.js";
import type { BillingPause } from "./billing-pause.js";
import type { ConnectionPlan } from "./connection-plan.js";
import type { DialectChoice } from "./dialect.js";
import type { DynamicConfig } from "./dynamic-config.js";
import type { Farewells } from "./farewells.js";
import { SampleGate } from "./sample-gate.js";

/** What a copy of a connection in another thread needs to go on without asking the server. */
export interface ConnectionSnapshot {
  readonly config: ClientConfigResponse;
  readonly dynamicConfig: ClientDynamicConfigResponse;
  readonly token: string | undefined;
}

/** The parts of an open connection; its sessions share them. */
export interface ConnectionParts {
  readonly plan: ConnectionPlan;
  readonly api: Api;
  /** The server's flags. */
  readonly config: ClientConfigResponse;
  readonly dynamicConfig: DynamicConfig;
  readonly dialect: DialectChoice;
  readonly billing: BillingPause;
  readonly telemetry: TelemetrySink;
  readonly tokens: TokenExchange | undefined;
  readonly baseUrl: BaseUrl;
  /** Whether requests are answered inside this process or by the caller, and not over the network. */
  readonly isInside: boolean;
  /** The name of a model as the server understands it: a folder by its whole path where they share the disk. */
  readonly nameModel: (model: string) => string;
  /** Sends without a credential, to any address: pools, redirects and the `fetch` option apply. */
  readonly send: Send;
  readonly closing: AbortController;
  readonly farewells: Farewells;
  readonly closeTransport: () => Promise<void>;
  /** How long polls wait for an answer. */
  readonly pollTimeout: PollTimeout;
  /** Bytes of large results that may be on their way at once. */
  readonly inflightResponses: Semaphore;
}

/** An open way to one server: endpoints, credential, flags, dialect and limits. */
export class Connection implements CallHost {
  readonly parts: ConnectionParts;
  readonly plan: ConnectionPlan;
  readonly runtime: Runtime;
  readonly api: Api;
  readonly config: ClientConfigResponse;
  readonly dialect: DialectChoice;
  readonly billing: BillingPause;
  readonly telemetry: TelemetrySink;
  /** Aborts when the connection is closed. */
  readonly closed: AbortSignal;
  /** Limits on samples that are on their way to the server. */
  readonly sampleGate: SampleGate;
  readonly #shared = new Map<unknown, unknown>();

  constructor(parts: ConnectionParts, telemetry: TelemetrySink = parts.telemetry) {
    this.parts = parts;
    this.plan = parts.plan;
    this.runtime = parts.plan.runtime;
    this.api = parts.api;
    this.config = parts.config;
    this.dialect = parts.dialect;
    this.billing = parts.billing;
    this.telemetry = telemetry;
    this.closed = parts.closing.signal;
    const { sampleDispatchBytesSemaphoreSize } = this.config;
    this.sampleGate = new SampleGate(this.runtime.clock, sampleDispatchBytesSemaphoreSize);
  }

  /** Calls an endpoint, for five minutes if need be. */
  call<N extends RouteName>(
    name: N,
    request: RequestOf<N>,
    options: CallOptions = {},
  ): Promise<ResponseOf<N>> {
    return this.api.call(name, request, { ...options, retries: { host: this } });
  }

  /** An object that all users of this connection share; the first of them makes it. */
  shared<T>(make: () => T): T {
    if (!this.#shared.has(make)) this.#shared.set(make, make());
    return this.#shared.get(make) as T;
  }

  snapshot(): ConnectionSnapshot {
    const { tokens, dynamicConfig } = this.parts;
    return { config: this.config, dynamicConfig: dynamicConfig.current, token: tokens?.token };
  }

  /** Ends everything under way, says what is left to be said, and frees sockets and timers. */
  async close(farewell?: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.closed.aborted) return;
    const { closing, dynamicConfig, telemetry, tokens, farewells, closeTransport } = this.parts;
    closing.abort(new CancelledError("The client was closed."));
    dynamicConfig.stop();
    telemetry.stop();
    await farewells.end(farewell);
    tokens?.stop();
    await closeTransport();
  }
}

const firstMs = 45_000;
const longestMs = 720_000;

/**
 * How long a poll may stay without an answer. Most servers answer within 45 seconds that a request is
 * still pending; some hold a poll for minutes. A poll that got no answer at all is taken for such a
 * one, and all polls of the connection wait twice as long from then on; only when even twelve minutes
 * do not help is it a lost connection. Once a server has answered in time that something is pending, it holds no
 * polls, and 45 seconds of silence are a lost connection.
 */
export class PollTimeout {
  readonly #runtime: Runtime;
  #currentMs = firstMs;
  #isPunctual = false;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** The server answered a poll that something is pending. */
  answeredPending(waitedMs: number): void {
    if (waitedMs <= firstMs && this.#currentMs === firstMs) this.#isPunctual = true;
  }

  get currentMs(): number {
    return this.#currentMs;
  }

  /** A poll that waited this long got no answer; true if the next one should wait longer. */
  extend(waitedMs: number): boolean {
    // Others may have lengthened it while this one waited.
    if (this.#isPunctual) return false;
    if (waitedMs < this.#currentMs) return true;
    if (this.#currentMs >= longestMs) return false;
    this.#currentMs = Math.min(this.#currentMs * 2, longestMs);
    this.#runtime.logger.info(
      `the server holds polls for longer than ${waitedMs / 1000} s; waiting up to ${this.#currentMs / 1000} s from now on`,
    );
    return true;
  }
}
