import { APIStatusError } from "../errors/api-error.js";
import { routes, type Route, type RouteName } from "../wire/routes.js";
import type { Connection } from "./connection.js";
import type { Dialect } from "./dialect.js";
import { askServer, otherServer, serverKinds, type ServerKind } from "./server-kinds.js";

/** What a server can do, as far as its answers and its source show it. */
export interface ServerDescription {
  /** What it is; null when its answers do not show it. */
  readonly name: string | null;
  /** The form of large messages, as far as it is known. */
  readonly dialect: Dialect;
  /** Names of its models. */
  readonly models: readonly string[];
  /** Flags that it sets beyond those of 0.25. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** Endpoints that it does not have; null when it does not show which it has. */
  readonly missing: readonly MissingEndpoint[] | null;
  /** What it leaves out or changes without a word. */
  readonly silences: readonly string[];
}

/** An endpoint that a server does not have. */
export interface MissingEndpoint {
  /** Its name in the route table. */
  readonly name: string;
  /** Method and path. */
  readonly endpoint: string;
  /** The first official client that calls it, where 0.25 does not. */
  readonly since: string | null;
}

/** Additions of this project, which no other server has. */
const ownRoutes: ReadonlySet<RouteName> = new Set<RouteName>(["streamSample", "getTokenizer"]);
const atOnce = 8;

/**
 * Asks a server about itself and looks for its endpoints. They are looked for with a method that none of them has, so
 * that nothing is made: 405 means that there is such a path, 404 that there is none.
 */
export async function describeServer(
  connection: Connection,
  signal: AbortSignal,
): Promise<ServerDescription> {
  const answers = await askServer(connection);
  const kind = serverKinds.find(({ isIt }) => isIt(answers)) ?? otherServer;
  // A server of this project is known, and is not shown by its marks alone.
  const { supportedModels } =
    answers.capabilities ?? (await connection.call("getServerCapabilities", null, { signal }));
  return {
    name: kind === otherServer ? null : kind.name,
    dialect: connection.dialect.current,
    models: supportedModels.flatMap(({ modelName }) => modelName ?? []),
    flags: answers.flags,
    missing: kind.name === "tinker-ts" ? [] : await findMissing(connection, signal),
    silences: silencesOf(kind),
  };
}

async function findMissing(
  connection: Connection,
  signal: AbortSignal,
): Promise<MissingEndpoint[] | null> {
  if ((await hasPath(connection, routes.healthz, signal)) !== true) return null;
  const names = (Object.keys(routes) as RouteName[]).filter((name) => !ownRoutes.has(name));
  const missing: MissingEndpoint[] = [];
  let next = 0;
  const look = async (): Promise<void> => {
    for (let name = names[next++]; name !== undefined; name = names[next++]) {
      const route: Route = routes[name];
      const { method, path, since = null } = route;
      if ((await hasPath(connection, route, signal)) !== false) continue;
      missing.push({ name, endpoint: `${method} ${path}`, since });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, look));
  return missing.toSorted((a, b) => a.endpoint.localeCompare(b.endpoint, "en"));
}

/** Undefined when the answer says neither. */
async function hasPath(
  { api }: Connection,
  { path, pool, retry }: Route,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const method = "PATCH" as unknown as Route["method"];
  const probe: Route = { method, path, pool, retry, request: null, response: null };
  const params = Object.fromEntries(
    Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => [name, "none"]),
  );
  try {
    await api.exchangeAt(probe, "describeServer", null, { params, signal, maxRetries: 0 });
    return undefined;
  } catch (error) {
    if (!(error instanceof APIStatusError)) throw error;
    return error.status === 405 ? true : error.status === 404 ? false : undefined;
  }
}

function silencesOf(kind: ServerKind): string[] {
  const { adapterOptions, clipsGradients, alpha, ignoredSampling, loads } = kind;
  const taken = new Set<string>(adapterOptions ?? []);
  const ignored = ["seed", "trainMlp", "trainAttn", "trainUnembed"].filter(
    (option) => !taken.has(option),
  );
  return [
    adapterOptions === null
      ? "it is not known whether it takes seed, trainMlp, trainAttn and trainUnembed of an adapter"
      : ignored.length > 0 && `ignores ${ignored.join(", ")} of an adapter`,
    alpha !== null && `gives every adapter an alpha of ${alpha}`,
    clipsGradients === false && "ignores gradClipNorm",
    clipsGradients === null && "it is not known whether it takes gradClipNorm",
    ignoredSampling.length > 0 && `ignores ${ignoredSampling.join(", ")} of samplingParams`,
    loads === "first" &&
      "loads a checkpoint only as the first request of a model; the client makes a new one",
  ].filter((text) => typeof text === "string");
}
