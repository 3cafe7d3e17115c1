import { Hono, type Context } from "hono";
import { encodeJson, routes, type Route, type RouteName } from "tinker-ts/wire";
import { credentialOf, type Authenticator } from "../auth/authenticator.js";
import type { Principal } from "../auth/principal.js";
import { InvalidBody } from "../workers/invalid-body.js";
import { ApiError } from "../errors/api-error.js";
import type { Logger } from "../log/logger.js";
import {
  answerErrors,
  emptyResponse,
  jsonResponse,
  type RenderError,
  typedResponse,
} from "./answers.js";
import { BodyRoom, bodyRules, readBody, type TypedBodyParts } from "./read-body.js";
import type { AnswerRefused, Call, Handlers } from "./call.js";

/** A page outside the route table, such as a download; it authenticates by itself if it wants to. */
export interface ExtraPage {
  /** "ALL" answers whatever no other page of the path does. @default "GET" */
  readonly method?: "GET" | "POST" | "PUT" | "DELETE" | "ALL";
  readonly path: string;
  /** Its name in the metrics. @default the path */
  readonly name?: string;
  /** On every answer, errors too. @default none */
  readonly headers?: Readonly<Record<string, string>>;
  /** Converts its errors to answers. @default as those of the API */
  readonly renderError?: RenderError;
  readonly answer: (
    request: Request,
    params: Readonly<Record<string, string>>,
  ) => Promise<Response> | Response;
}

/** What the application is made of. */
export interface AppParts extends TypedBodyParts {
  readonly handlers: Handlers;
  readonly answerRefused: AnswerRefused;
  readonly pages: readonly ExtraPage[];
  readonly authenticator: Authenticator;
  readonly browsers: BrowserRules;
  readonly logger: Logger;
  /** Messages to clients do not show it. */
  readonly dataDir: string;
  /** Called after every answer, for the metrics. */
  readonly onAnswer: (route: string, status: number, elapsedMs: number) => void;
  /** Replaces the address in links when the server is reached through a proxy. */
  readonly publicUrl: string | null;
}

/** The whole API as one function. */
export type HttpApp = (request: Request) => Promise<Response>;

const anyMethod = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** Routes that need no credential. */
const openRoutes: ReadonlySet<RouteName> = new Set<RouteName>(["healthz"]);

/** Puts every endpoint of the route table behind one function from request to response. */
export function createHttpApp(parts: AppParts): HttpApp {
  const hono = new Hono({ strict: false });
  for (const name of Object.keys(routes) as RouteName[]) {
    const route: Route = routes[name];
    hono.on(route.method, toHonoPath(route.path), (context) =>
      guarded(parts, name, context.req.raw, () => handle(parts, name, route, context)),
    );
  }
  for (const page of parts.pages) {
    const { method = "GET", name = page.path } = page;
    hono.on(method === "ALL" ? anyMethod : [method], page.path, (context) => {
      const request = context.req.raw;
      const answer = async () => page.answer(request, context.req.param());
      return guarded(parts, name, request, answer, page);
    });
  }
  hono.options("*", (context) => preflightResponse(context.req.raw, parts.browsers));
  hono.notFound((context) =>
    guarded(parts, "unknown", context.req.raw, () => {
      throw new ApiError(404, `there is no ${context.req.method} ${context.req.path}`);
    }),
  );
  return async (request) => hono.fetch(request);
}

/** Everything around a handler that has nothing to do with what it answers. */
async function guarded(
  parts: AppParts,
  name: string,
  request: Request,
  answer: () => Promise<Response>,
  { renderError, headers = {} }: Pick<ExtraPage, "renderError" | "headers"> = {},
): Promise<Response> {
  const startedAt = performance.now();
  const checked = async (): Promise<Response> => {
    checkOrigin(request, parts.browsers);
    return answer();
  };
  const { logger, dataDir } = parts;
  const response = await answerErrors({ logger, dataDir, request }, checked, renderError);
  for (const [header, value] of Object.entries(headers)) response.headers.set(header, value);
  for (const [header, value] of Object.entries(corsHeaders(request, parts.browsers))) {
    response.headers.set(header, value);
  }
  const elapsedMs = performance.now() - startedAt;
  parts.onAnswer(name, response.status, elapsedMs);
  parts.logger.debug(`${request.method} ${name}`, { status: response.status, ms: elapsedMs });
  return response;
}

async function handle(
  parts: AppParts,
  name: RouteName,
  route: Route,
  context: Context,
): Promise<Response> {
  const request = context.req.raw;
  const caller = openRoutes.has(name) ? anonymous : authenticate(parts, request);
  const { owner } = caller;
  const room = new BodyRoom(parts.scheduler, owner);
  const streams: Promise<unknown>[] = [];
  try {
    const rules = bodyRules(name, parts.limits);
    const body =
      route.request === null
        ? null
        : await readBody(parts, request, { typeName: route.request, rules, room, owner });
    const call: Call = {
      route,
      caller,
      body,
      params: paramsOf(context),
      query: context.req.query(),
      headers: request.headers,
      get signal() {
        return request.signal;
      },
      streaming: (work) => streams.push(work),
      get origin() {
        return parts.publicUrl ?? new URL(request.url).origin;
      },
    };
    // The table pairs every name with its own body and answer; a union of handlers cannot say that.
    const handler = parts.handlers[name] as (call: Call) => unknown;
    const answer = await handler(call);
    if (answer instanceof Response) return answer;
    if (route.response === null) return emptyResponse();
    return jsonResponse(encodeJson(route.response, answer as never));
  } catch (error) {
    if (!(error instanceof InvalidBody)) throw error;
    return typedResponse("UntypedAPIFuture", await parts.answerRefused(name, caller, error));
  } finally {
    if (streams.length === 0) room.release();
    else void Promise.allSettled(streams).then(() => room.release());
  }
}

const anonymous: Principal = { owner: "", email: null, keyId: "" };

function authenticate(parts: AppParts, request: Request): Principal {
  const credential = credentialOf(request.headers);
  const caller = parts.authenticator.identify(credential);
  if (caller) return caller;
  const problem = credential === "" ? "no API key was sent" : "the API key is not known here";
  throw new ApiError(401, `${problem}; put a valid key into the header X-API-Key`);
}

/** `{name}` becomes a parameter; a checkpoint id, which holds one slash, becomes two. */
function toHonoPath(path: string): string {
  return path
    .replace("{checkpointId}", ":checkpointFolder/:checkpointName")
    .replace(/\{(\w+)\}/g, ":$1");
}

function paramsOf(context: Context): Record<string, string> {
  const { checkpointFolder, checkpointName, ...params } = context.req.param();
  if (checkpointFolder === undefined) return params;
  return { ...params, checkpointId: `${checkpointFolder}/${checkpointName}` };
}

/** Who may call from a browser. */
export interface BrowserRules {
  /** Origins of web pages that may call, or "*"; pages served by this server itself always may. */
  readonly corsOrigins: readonly string[];
  /** Answer to loopback names and to these only; null answers to any name. */
  readonly hostNames: readonly string[] | null;
}

const loopbackNames = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|local\.invalid)$/i;

/**
 * Keeps web pages from using a server on their visitor's machine: pages of other origins are refused,
 * and so are foreign names that point at this machine. Programs send no `Origin`, so they
 * never notice.
 */
export function checkOrigin(request: Request, rules: BrowserRules): void {
  const { host, hostname } = addressOf(request.url);
  if (rules.hostNames && !loopbackNames.test(hostname) && !rules.hostNames.includes(hostname)) {
    const remedy =
      hostname === "0.0.0.0" || hostname === "[::]"
        ? "that is an address to listen on; use localhost in the address of the server"
        : "use localhost, set an API key, or give the option publicUrl the address in front of it";
    throw new ApiError(403, `this server answers to localhost only, not to ${hostname}: ${remedy}`);
  }
  const origin = request.headers.get("origin");
  if (origin === null || isAllowed(origin, rules) || hostOf(origin) === host) return;
  throw new ApiError(
    403,
    `pages of ${origin} may not call this server; see the option corsOrigins`,
  );
}

/** The headers that let a page of an allowed origin read the answer. */
export function corsHeaders(request: Request, rules: BrowserRules): Record<string, string> {
  const origin = request.headers.get("origin");
  if (origin === null || !isAllowed(origin, rules)) return {};
  return { "access-control-allow-origin": origin, vary: "origin" };
}

/** The answer to a browser that asks before it calls. */
export function preflightResponse(request: Request, rules: BrowserRules): Response {
  const headers = {
    ...corsHeaders(request, rules),
    "access-control-allow-methods": "GET, POST, PUT, DELETE",
    "access-control-allow-headers":
      request.headers.get("access-control-request-headers") ?? "content-type, x-api-key",
    "access-control-max-age": "600",
  };
  return new Response(null, { status: 204, headers });
}

let lastAddress = new URL("http://localhost");

/** The host that a URL names; nearly all requests come to the same one, and parsing takes long. */
function addressOf(url: string): URL {
  const origin = url.slice(0, url.indexOf("/", "https://".length));
  if (origin !== lastAddress.origin) lastAddress = new URL(url);
  return lastAddress;
}

function isAllowed(origin: string, rules: BrowserRules): boolean {
  return rules.corsOrigins.includes("*") || rules.corsOrigins.includes(origin);
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}
