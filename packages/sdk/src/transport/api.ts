import { APIResponseValidationError } from "../errors/api-error.js";
import { WireError } from "../errors/wire-error.js";
import type { Cancellation } from "../runtime/cancellation.js";
import type { Runtime } from "../runtime/runtime.js";
import { wireNameOf } from "../schema/wire-name.js";
import { decodeJson, encodeJson } from "../wire/json-codec.js";
import { stringifyJson } from "../wire/json-text.js";
import { routes, type Pool, type Route, type RouteName } from "../wire/routes.js";
import type { WireInput, WireTypeName, WireValue } from "../wire/wire-types.js";
import type { Acceptance } from "./acceptance.js";
import type { BaseUrl } from "./base-url.js";
import { endpointPath, type Query } from "./endpoint-path.js";
import { sendWithRetries } from "./http-retries.js";
import type { Headers, HttpRequest, HttpResponse, RequestBody, Send } from "./message.js";

type BodyTypes = {
  [N in RouteName]: (typeof routes)[N]["request"] extends infer T extends WireTypeName
    ? WireInput<T>
    : null;
};
type AnswerTypes = {
  [N in RouteName]: (typeof routes)[N]["response"] extends infer T extends WireTypeName
    ? WireValue<T>
    : null;
};

/** What an endpoint takes as its body. */
export type RequestOf<N extends RouteName> = BodyTypes[N];

/** What an endpoint answers. */
export type ResponseOf<N extends RouteName> = AnswerTypes[N];

/** Endpoints that accept work and tell its result later. */
export type FutureEndpoint = {
  [N in RouteName]: (typeof routes)[N]["response"] extends "UntypedAPIFuture" ? N : never;
}[RouteName];

/** How a particular call differs from its route. */
export interface CallOptions {
  readonly params?: Readonly<Record<string, string>>;
  /** By public names; the wire's are derived. */
  readonly query?: Query;
  readonly headers?: Headers;
  readonly signal?: Cancellation | undefined;
  /** Replaces the client's default; 0 is a single attempt. */
  readonly maxRetries?: number;
  readonly pool?: Pool;
  /** Replaces the route's own timeout. */
  readonly timeoutMs?: number;
  /** Allows more than the route does. */
  readonly maxAnswerBytes?: number;
  /** Hands a good answer on part by part. */
  readonly streams?: boolean;
  readonly isBackground?: boolean;
  readonly followsRedirects?: boolean;
  /**
   * False where a 409 tells of a state and not of a lock.
   * @default true
   */
  readonly retriesConflicts?: boolean;
}

/** A body that is ready to be sent. */
export interface EncodedBody {
  readonly content: RequestBody;
  /** What to say about it when it is not plain JSON. */
  readonly headers?: Headers;
}

/** What calls to one server have in common. */
export interface ApiSettings {
  readonly baseUrl: BaseUrl;
  readonly headers: Headers;
  readonly query: Query;
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly runtime: Runtime;
}

/** The endpoints of one server as functions: typed bodies in, typed answers out. */
export class Api {
  readonly #send: Send;
  readonly #settings: ApiSettings;
  readonly #headersByRoute = new Map<Route, Headers>();

  constructor(send: Send, settings: ApiSettings) {
    this.#send = send;
    this.#settings = settings;
  }

  /** Calls an endpoint with a JSON body and reads its answer. */
  async call<N extends RouteName>(
    name: N,
    request: RequestOf<N>,
    options: CallOptions = {},
  ): Promise<ResponseOf<N>> {
    const route: Route = routes[name];
    const body =
      route.request === null ? null : jsonBody(encodeJson(route.request, request as never));
    return this.read(name, await this.exchange(name, body, options));
  }

  /** Hands work in at an endpoint that tells its result later. */
  async submit<N extends FutureEndpoint>(
    name: N,
    request: RequestOf<N>,
    options: CallOptions = {},
  ): Promise<Acceptance> {
    const body = jsonBody(encodeJson(routes[name].request, request as never));
    return this.readAcceptance(name, await this.exchange(name, body, options));
  }

  /** Reads the answer to work that was handed in. */
  readAcceptance(name: FutureEndpoint, response: HttpResponse): Acceptance {
    const requestId = response.headers["x-tinker-result-of"];
    return requestId === undefined ? this.read(name, response) : { requestId, outcome: response };
  }

  /** Sends a ready body and returns the raw answer; rejects for every status other than 2xx. */
  exchange(name: RouteName, body: EncodedBody | null, options: CallOptions): Promise<HttpResponse> {
    return this.exchangeAt(routes[name], name, body, options);
  }

  /** Does the same at an endpoint that is not in the table of routes. */
  exchangeAt(
    route: Route,
    name: string,
    body: EncodedBody | null,
    options: CallOptions,
  ): Promise<HttpResponse> {
    return sendWithRetries(this.#send, this.#toRequest(route, body, options), {
      maxRetries: options.maxRetries ?? (route.retry === "http" ? this.#settings.maxRetries : 0),
      retriesConflicts: options.retriesConflicts ?? true,
      endpoint: name,
      runtime: this.#settings.runtime,
    });
  }

  /** Reads the answer of an endpoint. */
  read<N extends RouteName>(name: N, response: HttpResponse): ResponseOf<N> {
    const route: Route = routes[name];
    if (route.response === null) return null as ResponseOf<N>;
    try {
      return decodeJson(route.response, response.body, {
        isLenient: true,
      }) as unknown as ResponseOf<N>;
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      const body = new TextDecoder().decode(response.body);
      throw new APIResponseValidationError(
        `The answer of ${route.method} ${route.path} is not what was promised: ${error.message}. The server said: ${excerpt(body)}`,
        { status: response.status, cause: error, body },
      );
    }
  }

  #commonHeaders(route: Route): Headers {
    let headers = this.#headersByRoute.get(route);
    if (!headers) {
      const timeoutMs = route.timeoutMs ?? this.#settings.timeoutMs;
      headers = {
        ...this.#settings.headers,
        ...(route.method === "GET" ? {} : { "content-type": "application/json" }),
        "x-stainless-read-timeout": String(timeoutMs / 1000),
      };
      this.#headersByRoute.set(route, headers);
    }
    return headers;
  }

  #toRequest(route: Route, body: EncodedBody | null, options: CallOptions): HttpRequest {
    const { baseUrl, query, timeoutMs } = this.#settings;
    const ownTimeoutMs = options.timeoutMs ?? route.timeoutMs ?? timeoutMs;
    const ownQuery = options.query ? { ...query, ...toWireNames(options.query) } : query;
    const path = endpointPath(route.path, options.params, ownQuery);
    return {
      method: route.method,
      origin: baseUrl.origin,
      path: baseUrl.prefix + path,
      commonHeaders: this.#commonHeaders(route),
      headers: ownHeaders(body, options),
      body: body?.content ?? null,
      idempotencyKey: route.method === "GET" ? null : idempotencyKey(),
      retryCount: 0,
      pool: options.pool ?? route.pool,
      timeoutMs: ownTimeoutMs,
      maxAnswerBytes: options.maxAnswerBytes ?? route.maxAnswerBytes ?? defaultMaxAnswerBytes,
      streams: options.streams ?? false,
      isBackground: options.isBackground ?? false,
      followsRedirects: options.followsRedirects ?? true,
      signal: options.signal,
    };
  }
}

const defaultMaxAnswerBytes = 2 ** 26;
const excerptLength = 300;

/** The beginning of what a server said, for an error message. */
export function excerpt(text: string): string {
  if (text.trim() === "") return "nothing";
  return text.length <= excerptLength ? text : `${text.slice(0, excerptLength)}…`;
}

/** A JSON body. */
export function jsonBody(json: unknown): EncodedBody {
  return { content: stringifyJson(json) };
}

const noHeaders: Headers = {};

/** Most requests have headers of one kind; only the others need a new object. */
function ownHeaders(body: EncodedBody | null, { headers, streams }: CallOptions): Headers {
  if (!streams && !body?.headers) return headers ?? noHeaders;
  return {
    // Whoever reads parts as they come wants them as they are.
    ...(streams ? { "accept-encoding": "identity" } : undefined),
    ...body?.headers,
    ...headers,
  };
}

function toWireNames(query: Query): Query {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => [wireNameOf(name), value]),
  );
}

let keyPrefix = "";
let keyCount = 0;

/** Keys differ in their last digits, which are counted: a random number for each would take as long as a header. */
function idempotencyKey(): string {
  if (keyCount % 2 ** 32 === 0) {
    keyPrefix = `stainless-node-retry-${crypto.randomUUID().slice(0, -8)}`;
    keyCount = 0;
  }
  return keyPrefix + (2 ** 32 + keyCount++).toString(16).slice(1);
}
