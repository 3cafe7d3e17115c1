import type { Route, routes, RouteName, WireInput, WireTypeName, WireValue } from "tinker-ts/wire";
import type { Principal } from "../auth/principal.js";
import type { ReceivedPass } from "../workers/engine-pass.js";
import type { InvalidBody } from "../workers/invalid-body.js";

type RouteOf<N extends RouteName> = (typeof routes)[N];

/** Passes can be very large; handlers get what is kept of them and not what they say. */
type BodyOf<R> = R extends { readonly request: infer T extends WireTypeName }
  ? T extends "ForwardBackwardRequest" | "ForwardRequest"
    ? ReceivedPass
    : WireValue<T>
  : null;

type AnswerOf<R> = R extends { readonly response: infer T extends WireTypeName }
  ? WireInput<T>
  : void;

/** One request after authentication and decoding, as a handler sees it. */
export interface Call<Body = unknown> {
  readonly route: Route;
  readonly caller: Principal;
  readonly body: Body;
  /** The named parts of the path. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Headers;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  /** Called with work that continues after the answer has begun; the body counts until it ends. */
  readonly streaming: (work: Promise<unknown>) => void;
  /** Where this server was reached, without a path; links in answers begin with it. */
  readonly origin: string;
}

/** Handles one endpoint; may answer with a `Response` of its own where the table's type does not fit. */
export type Handler<N extends RouteName = RouteName> = (
  call: Call<BodyOf<RouteOf<N>>>,
) => Promise<AnswerOf<RouteOf<N>> | Response> | AnswerOf<RouteOf<N>> | Response;

/** Answers a request with an undecodable body, or throws the refusal. */
export type AnswerRefused = (
  name: RouteName,
  caller: Principal,
  error: InvalidBody,
) => Promise<WireInput<"UntypedAPIFuture">>;

/** A handler for every endpoint of the route table. */
export type Handlers = { readonly [N in RouteName]: Handler<N> };

/** Handlers of some endpoints. */
export type HandlersOf<N extends RouteName> = Pick<Handlers, N>;
