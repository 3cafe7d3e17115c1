import { DependencyError } from "../errors/dependency-error.js";
import type { FetchHandler } from "../transport/fetch-transport.js";

/** The engine in this process, seen as a server. */
export interface LocalServer {
  readonly fetch: FetchHandler;
  close(): Promise<void> | void;
}

/** What this package expects of `@tinker-ts/server`. */
interface LocalServerModule {
  createLocalHandler(): Promise<LocalServer> | LocalServer;
}

const packageName = "@tinker-ts/server";

/*
 * Clients of one process share one engine: it holds the models in memory, and what one client saves
 * another can load. The last one to leave closes it.
 */
let shared: { readonly server: Promise<LocalServer>; users: number } | undefined;

/** Takes part in the engine of this process, starting it if need be. */
export async function joinLocalServer(): Promise<LocalServer> {
  shared ??= { server: startServer(), users: 0 };
  const joined = shared;
  joined.users++;
  const leave = async (): Promise<void> => {
    joined.users--;
    if (joined.users > 0) return;
    if (shared === joined) shared = undefined;
    await (await joined.server).close();
  };
  try {
    const { fetch } = await joined.server;
    return { fetch, close: leave };
  } catch (error) {
    if (shared === joined) shared = undefined;
    throw error;
  }
}

async function startServer(): Promise<LocalServer> {
  let module: LocalServerModule;
  try {
    // Bundlers leave it to Node: the engine has a native part, and files beside its modules.
    module = (await import(
      /* turbopackIgnore: true */ /* webpackIgnore: true */ /* @vite-ignore */ packageName
    )) as LocalServerModule;
  } catch (error) {
    throw new DependencyError(packageName, 'to use baseUrl "local:"', { cause: error });
  }
  return module.createLocalHandler();
}
