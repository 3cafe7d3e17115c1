import { CancelledError } from "../errors/cancelled-error.js";
import { ByteSemaphore } from "../runtime/byte-semaphore.js";
import type { Runtime } from "../runtime/runtime.js";
import type { TelemetrySink } from "../telemetry/sink.js";
import type { Api } from "../transport/api.js";
import type { BaseUrl } from "../transport/base-url.js";
import type { Send } from "../transport/message.js";
import type { TokenExchange } from "../transport/token-exchange.js";
import type { ClientConfigResponse, ClientDynamicConfigResponse } from "../types/service.js";
import type { BillingPause } from "./billing-pause.js";
import type { ConnectionPlan } from "./connection-plan.js";
import type { DialectChoice } from "./dialect.js";
import type { DynamicConfig } from "./dynamic-config.js";
import { PollPatience } from "./poll-patience.js";
import { executeWithRetries, type RetryOptions } from "./execute-with-retries.js";

/** What a copy of a connection in another thread needs to go on without asking the server. */
export interface ConnectionSnapshot {
  readonly config: ClientConfigResponse;
  readonly dynamicConfig: ClientDynamicConfigResponse;
  readonly token: string | undefined;
}

/** The parts of an open connection. */
export interface ConnectionParts {
  readonly plan: ConnectionPlan;
  readonly api: Api;
  readonly config: ClientConfigResponse;
  readonly dynamicConfig: DynamicConfig;
  readonly dialect: DialectChoice;
  readonly billing: BillingPause;
  readonly telemetry: TelemetrySink;
  readonly tokens: TokenExchange | undefined;
  readonly baseUrl: BaseUrl;
  readonly isInside: boolean;
  /** Sends without a credential, to any address. */
  readonly send: Send;
  readonly closeTransport: () => Promise<void>;
}

/** An open way to one server: endpoints, credential, flags, dialect and limits. */
export class Connection {
  readonly #parts: ConnectionParts;
  readonly #closing = new AbortController();
  /** Bytes of large results that may be on their way at once. */
  readonly inflightResponses: ByteSemaphore;
  /** How long polls wait for an answer. */
  readonly pollPatience: PollPatience;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.pollPatience = new PollPatience(parts.plan.runtime);
    this.inflightResponses = new ByteSemaphore(parts.config.inflightResponseBytesSemaphoreSize);
  }

  get plan(): ConnectionPlan {
    return this.#parts.plan;
  }

  get runtime(): Runtime {
    return this.#parts.plan.runtime;
  }

  get api(): Api {
    return this.#parts.api;
  }

  /** The server's flags. */
  get config(): ClientConfigResponse {
    return this.#parts.config;
  }

  get dynamicConfig(): DynamicConfig {
    return this.#parts.dynamicConfig;
  }

  get dialect(): DialectChoice {
    return this.#parts.dialect;
  }

  get billing(): BillingPause {
    return this.#parts.billing;
  }

  get telemetry(): TelemetrySink {
    return this.#parts.telemetry;
  }

  get baseUrl(): BaseUrl {
    return this.#parts.baseUrl;
  }

  /** Whether requests are answered inside this process or by the caller, and not over the network. */
  get isInside(): boolean {
    return this.#parts.isInside;
  }

  /** Sends without a credential, to any address: pools, redirects and the `fetch` option apply. */
  get send(): Send {
    return this.#parts.send;
  }

  /** The token that stands for the key, when the server exchanges keys. */
  get token(): string | undefined {
    return this.#parts.tokens?.token;
  }

  /** Aborts when the connection is closed. */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  /** Runs a call in the retry loop. */
  retrying<T>(endpoint: string, call: () => Promise<T>, options: RetryOptions = {}): Promise<T> {
    return executeWithRetries(call, this, endpoint, options);
  }

  snapshot(): ConnectionSnapshot {
    const { config, token } = this;
    return { config, dynamicConfig: this.dynamicConfig.current, token };
  }

  /** Ends everything under way and frees sockets and timers; nothing is sent to the server. */
  async close(): Promise<void> {
    if (this.closed.aborted) return;
    this.#closing.abort(new CancelledError("The client was closed."));
    this.dynamicConfig.stop();
    this.telemetry.stop();
    this.#parts.tokens?.stop();
    await this.#parts.closeTransport();
  }
}
