import { DependencyError } from "../errors/tinker-error.js";
import type { Environment } from "../runtime/environment.js";
import type { FetchHandler } from "../transport/fetch-transport.js";

/** Where `local:` keeps everything, and which process computes. */
export interface LocalPlace {
  /** A folder, or `memory` for a temporary one. */
  readonly dataDir: string;
  readonly isInProcess: boolean;
}

/** The engine in this process, seen as a server. */
export interface InsideServer {
  readonly fetch: FetchHandler;
  close(): Promise<void> | void;
}

/** The server that programs of a data directory share. */
export interface SharedServer {
  readonly url: string;
  /** Null where no key is needed. */
  readonly key: string | null;
}

/** What this package expects of `@tinker-ts/server`. */
interface ServerModule {
  createLocalHandler(options: {
    readonly inProcess: boolean;
    readonly dataDir?: string;
  }): Promise<InsideServer> | InsideServer;
}

/** What this package expects of `@tinker-ts/server/local`. */
interface LocalModule {
  joinLocalServer(options: {
    readonly dataDir: string | undefined;
    readonly env: Environment;
    readonly signal?: AbortSignal;
  }): Promise<SharedServer>;
  nameForServer(model: string): string;
}

/** A way to the server of a data directory. */
export interface SharedPlace {
  find(): Promise<SharedServer>;
  /** The name of a model as a server in another folder understands it. */
  readonly nameModel: (model: string) => string;
}

/**
 * Finds the server of a data directory, and starts it where it does not run. Every new connection asks again, so that
 * clients go on after the server was killed, or when another one has taken its place.
 */
export async function findSharedServer(
  { dataDir }: LocalPlace,
  env: Environment,
): Promise<SharedPlace> {
  const local = await load<LocalModule>("@tinker-ts/server/local");
  let joining: Promise<SharedServer> | undefined;
  // Connections that are opened together ask once.
  return {
    find: () =>
      (joining ??= local.joinLocalServer({ dataDir: dataDir || undefined, env }).finally(() => {
        joining = undefined;
      })),
    nameModel: (model) => local.nameForServer(model),
  };
}

/*
 * Clients of one process share one engine per data directory: it holds the models in memory, and what one client
 * saves another can load. The last client closes it.
 */
const inside = new Map<string, { readonly server: Promise<InsideServer>; users: number }>();

/** Takes part in the engine of this process, starting it if need be. */
export async function openInsideServer({ dataDir }: LocalPlace): Promise<InsideServer> {
  const joined = inside.get(dataDir) ?? { server: startInside(dataDir), users: 0 };
  inside.set(dataDir, joined);
  joined.users++;
  const forget = (): void => {
    if (inside.get(dataDir) === joined) inside.delete(dataDir);
  };
  try {
    const server = await joined.server;
    return {
      fetch: server.fetch,
      async close() {
        joined.users--;
        if (joined.users > 0) return;
        forget();
        await server.close();
      },
    };
  } catch (error) {
    forget();
    throw error;
  }
}

async function startInside(dataDir: string): Promise<InsideServer> {
  const server = await load<ServerModule>("@tinker-ts/server");
  return server.createLocalHandler({ inProcess: true, ...(dataDir === "" ? {} : { dataDir }) });
}

async function load<T>(entry: string): Promise<T> {
  try {
    // Bundlers leave it to Node: the engine has a native part, and files beside its modules.
    return (await import(
      /* turbopackIgnore: true */ /* webpackIgnore: true */ /* @vite-ignore */ entry
    )) as T;
  } catch (error) {
    throw new DependencyError("@tinker-ts/server", 'to use baseUrl "local:"', { cause: error });
  }
}
