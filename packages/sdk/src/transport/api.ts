import { platform } from "../runtime/platform.js";
import {
  type Headers,
  type HttpResponse,
  describeRequest,
  isSuccess,
  type HttpRequest,
  type RequestBody,
  type Send,
} from "./message.js";
import { ArgumentError } from "../errors/argument-error.js";
import {
  APIConnectionError,
  APIResponseValidationError,
  APIStatusError,
} from "../errors/api-error.js";
import { CredentialError } from "../errors/tinker-error.js";
import { WireError } from "../errors/wire-error.js";
import type { Cancellation } from "../runtime/cancellation.js";
import type { Runtime } from "../runtime/runtime.js";
import { wireNameOf } from "../schema/wire-name.js";
import { decodeJson, encodeJson } from "../wire/json-codec.js";
import { stringifyJson } from "../wire/json-text.js";
import { routes, type Pool, type Route, type RouteName } from "../wire/routes.js";
import type { WireInput, WireTypeName, WireValue } from "../wire/wire-types.js";
import type { BaseUrl } from "./base-url.js";
import type { CredentialProvider } from "./resolve-credential.js";
import { toStatusError } from "./responses.js";
import { CallPolicy, retryAfter, type CallRetries } from "./retry.js";
import { problemOfHeaderValue } from "./sendable-header.js";

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

/** Endpoints that accept work and return its result later. */
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
  /** Delivers a good answer part by part. */
  readonly streams?: boolean;
  readonly isBackground?: boolean;
  readonly followsRedirects?: boolean;
  /**
   * False where a 409 reports a state and not a lock.
   * @default true
   */
  readonly retriesConflicts?: boolean;
  /** Goes on after a row of failed tries; without it that is the end. */
  readonly retries?: CallRetries | undefined;
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
  /** The credential for the next request; a request without one is sent without. */
  readonly credential?: CredentialProvider | undefined;
}

/** The headers of a route, for as long as the credential is the same. */
interface RouteHeaders {
  readonly credential: string | undefined;
  readonly headers: Headers;
}

/** The endpoints of one server as functions: typed bodies in, typed answers out. */
export class Api {
  readonly #send: Send;
  readonly #settings: ApiSettings;
  readonly #headersByRoute = new Map<Route, RouteHeaders>();
  #credential: CredentialProvider | undefined;
  #keyPrefix = "";
  #keyCount = 0;

  constructor(send: Send, settings: ApiSettings) {
    this.#send = send;
    this.#settings = settings;
    this.#credential = settings.credential;
  }

  /** Replaces the source of the credential. */
  useCredential(credential: CredentialProvider): void {
    this.#credential = credential;
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

  /** Submits work to an endpoint that returns its result later. */
  async submit<N extends FutureEndpoint>(
    name: N,
    request: RequestOf<N>,
    options: CallOptions = {},
  ): Promise<Acceptance> {
    const body = jsonBody(encodeJson(routes[name].request, request as never));
    return this.readAcceptance(name, await this.exchange(name, body, options));
  }

  /** Reads the answer to submitted work. */
  readAcceptance(name: FutureEndpoint, response: HttpResponse): Acceptance {
    const requestId = response.headers["x-tinker-result-of"];
    return requestId === undefined ? this.read(name, response) : { requestId, outcome: response };
  }

  /** Sends a ready body and returns the raw answer; rejects for every status other than 2xx. */
  exchange(name: RouteName, body: EncodedBody | null, options: CallOptions): Promise<HttpResponse> {
    return this.exchangeAt(routes[name], name, body, options);
  }

  /** Does the same at an endpoint that is not in the table of routes. */
  async exchangeAt(
    route: Route,
    name: string,
    body: EncodedBody | null,
    options: CallOptions,
  ): Promise<HttpResponse> {
    const { runtime, maxRetries } = this.#settings;
    const { signal, retries, isBackground = false, retriesConflicts = true } = options;
    const { clock } = runtime;
    const request = this.#toRequest(route, body, options);
    const startedAt = clock.now();
    try {
      return await this.#try(route, request, 0, retries);
    } catch (error) {
      const policy = new CallPolicy({
        endpoint: name,
        runtime,
        startedAt,
        maxRetries: options.maxRetries ?? (route.retry === "http" ? maxRetries : 0),
        retriesConflicts,
        isBackground,
        retries,
      });
      const attempt = (index: number) => this.#try(route, request, index, retries);
      return retryAfter(error, attempt, policy, { clock, signal, isBackground }).catch(
        (failure: unknown) => {
          throw namedIfMissing(failure, route);
        },
      );
    }
  }

  /** Sends a request once, with the credential of the moment. */
  async #try(
    route: Route,
    request: HttpRequest,
    retryCount: number,
    retries: CallRetries | undefined,
  ): Promise<HttpResponse> {
    const held = retries?.gate?.();
    if (held) await held;
    let credential: string | Promise<string | undefined> | undefined;
    try {
      credential = this.#credential?.(request.signal);
      if (typeof credential === "object") credential = await credential;
    } catch (error) {
      throw toCredentialFailure(error, request);
    }
    const commonHeaders = this.#commonHeaders(route, credential);
    const response = await this.#send({ ...request, commonHeaders, retryCount });
    if (isSuccess(response)) return response;
    throw toStatusError(response, request);
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
        `The answer of ${route.method} ${route.path} does not match the API schema: ${error.message}. It begins: ${excerpt(body)}`,
        { status: response.status, cause: error, body },
      );
    }
  }

  #commonHeaders(route: Route, credential: string | undefined): Headers {
    const made = this.#headersByRoute.get(route);
    if (made && made.credential === credential) return made.headers;
    const problem = credential === undefined ? undefined : problemOfHeaderValue(credential);
    // Trying again would not make it any better.
    if (problem) throw new CredentialError(`The credential ${problem}.`);
    const timeoutMs = route.timeoutMs ?? this.#settings.timeoutMs;
    const headers = {
      ...this.#settings.headers,
      ...(route.method === "GET" ? {} : { "content-type": "application/json" }),
      "x-stainless-read-timeout": String(timeoutMs / 1000),
      ...(credential === undefined ? {} : { "x-api-key": credential }),
    };
    this.#headersByRoute.set(route, { credential, headers });
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
      commonHeaders: noHeaders,
      headers: ownHeaders(body, options),
      body: body?.content ?? null,
      idempotencyKey: route.method === "GET" ? null : this.#nextKey(),
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

  /** Keys differ in their last digits, which are counted: a random number for each would take as long as a header. */
  #nextKey(): string {
    if (this.#keyCount % 2 ** 32 === 0) {
      this.#keyPrefix = `stainless-node-retry-${crypto.randomUUID().slice(0, -8)}`;
      this.#keyCount = 0;
    }
    return this.#keyPrefix + (2 ** 32 + this.#keyCount++).toString(16).slice(1);
  }
}

const defaultMaxAnswerBytes = 2 ** 26;
const excerptLength = 300;

/** The beginning of an answer, for an error message. */
export function excerpt(text: string): string {
  if (text.trim() === "") return "nothing";
  return text.length <= excerptLength ? text : `${text.slice(0, excerptLength)}…`;
}

/** A JSON body. */
export function jsonBody(json: unknown): EncodedBody {
  return { content: stringifyJson(json) };
}

const noHeaders: Headers = {};

/** The text of a 404 that is about a path and not about something that the path names. */
const noSuchPath = /^$|<html|not found"?}?$|there is no (get|post|put|delete) |no such endpoint/i;

/** A server that is too old for an endpoint says only that it has no such path. */
function namedIfMissing(error: unknown, { method, path, since }: Route): unknown {
  if (since === undefined || !(error instanceof APIStatusError)) return error;
  const { status, body } = error;
  const text = typeof body === "string" ? body : stringifyJson(body ?? "").replace(/^"|"$/g, "");
  if (status !== 405 && status !== 501 && !(status === 404 && noSuchPath.test(text))) return error;
  error.message = `The server does not offer ${method} ${path}, which clients call since ${since} (HTTP ${status}).`;
  return error;
}

/** Most requests have headers of one kind; only the others need a new object. */
function ownHeaders(body: EncodedBody | null, { headers, streams }: CallOptions): Headers {
  if (!streams && !body?.headers) return headers ?? noHeaders;
  return {
    // A streamed body is passed on as it is.
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

/** Whatever a provider depends on may be back at the next try, so that its failure counts as a lost connection. */
function toCredentialFailure(cause: unknown, request: HttpRequest): unknown {
  if (request.signal?.aborted) return request.signal.reason;
  const message = cause instanceof Error ? cause.message : String(cause);
  return new APIConnectionError(`Could not get a credential: ${message}`, {
    cause,
    request: describeRequest(request),
    wasSent: false,
  });
}

/** Values for a query; null, undefined and empty text are left out. */
export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Fills `{name}` parameters in and appends the query. */
export function endpointPath(
  template: string,
  params: Readonly<Record<string, string>> = {},
  query?: Query,
): string {
  const path = template.includes("{")
    ? template.replace(/\{(\w+)\}/g, (_, name: string) => checkParam(name, params[name]))
    : template;
  if (!query) return path;
  const entries = Object.entries(query).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  if (entries.length === 0) return path;
  const search = new URLSearchParams(
    entries.map(([name, value]): [string, string] => [name, String(value)]),
  );
  return `${path}?${search.toString()}`;
}

// Parameters are inserted verbatim, because ids contain slashes and colons; what would change the
// meaning of the URL is therefore refused.
function checkParam(name: string, value: string | undefined): string {
  if (value === undefined || value === "") throw new ArgumentError(name, "must not be empty");
  if (!/^[\w.~!$&'()*+,;=:@/-]+$/.test(value) || value.split("/").includes("..")) {
    throw new ArgumentError(name, `${JSON.stringify(value)} cannot be part of a URL`);
  }
  return value;
}

/*
 * Most operations on small models take a few milliseconds, and asking for the result would cost as much
 * again. A request may therefore have the time that its sender will wait in a header; a server of this project
 * answers with the result when it is there by then, in the form of a poll's answer, and names the
 * request in a header. All others take no notice.
 */

/** Shorter than what a connection may be quiet for, and than what anybody would notice in a line. */
const holdMs = 50;

/** Larger requests take longer than anybody waits. */
const maxHeldBytes = 64 * 1024;

const holding: Headers = { "x-tinker-hold-ms": String(holdMs) };
const nothing: Headers = {};

/** An accepted request. */
export interface Acceptance {
  readonly requestId: string;
  /** The answer that a poll would have got, where it came along. */
  readonly outcome?: HttpResponse;
  /** Names of the sequences of a sample. */
  readonly sampleSequenceIds?: readonly string[] | null;
}

/**
 * The headers of a request with no other request behind it. Browsers ask the server first whether a header may
 * be sent, and other servers would refuse it.
 */
export function holdHeaders(request: { isAlone: boolean; sizeBytes?: number }): Headers {
  const { isAlone, sizeBytes = 0 } = request;
  const isQuick = isAlone && sizeBytes <= maxHeldBytes && platform.runtime !== "browser";
  return isQuick ? holding : nothing;
}
