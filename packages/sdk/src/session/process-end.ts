import type { SessionEnd } from "./session.js";

/** Closes a client; resolves when the server has answered or does not. */
export type CloseClient = (end: SessionEnd) => Promise<void>;

/** A client that is closed when a signal ends the process. */
export interface ProcessWatch {
  /** How the program is ending, where a signal or an uncaught error came by. */
  readonly seen: SessionEnd | undefined;
  stop(): void;
}

interface OpenWatch extends ProcessWatch {
  readonly close: CloseClient;
  seen: SessionEnd | undefined;
}

const endingSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const watches = new Set<OpenWatch>();

/**
 * Has a client closed when a signal ends the process, so that its session does not stay open at the server.
 *
 * - Handlers exist only while a client has a session. They raise the signal again: it ends the process as it would
 *   have, with the same exit code. A second one ends it at once.
 * - A program with a handler of its own decides by itself; SIGINT and SIGTERM are only remembered for its `close()`.
 * - Uncaught errors are observed and not handled. `process.exit` cannot be waited for.
 */
export function watchProcessEnd(close: CloseClient): ProcessWatch {
  const watch: OpenWatch = {
    close,
    seen: undefined,
    stop() {
      watches.delete(watch);
      if (watches.size === 0) stopListening();
    },
  };
  if (watches.size === 0) startListening();
  watches.add(watch);
  return watch;
}

function startListening(): void {
  // Before the handlers of the program, which may close its clients.
  for (const signal of endingSignals) process.prependListener(signal, onSignal);
  process.on("uncaughtExceptionMonitor", onUncaught);
}

function stopListening(): void {
  for (const signal of endingSignals) process.off(signal, onSignal);
  process.off("uncaughtExceptionMonitor", onUncaught);
}

function onSignal(signal: NodeJS.Signals): void {
  const end: SessionEnd = { status: "interrupted", detail: signal };
  if (process.listenerCount(signal) > 1) {
    if (signal !== "SIGHUP") note(end);
    return;
  }
  stopListening();
  const closing = Array.from(watches, (watch) => watch.close(end));
  void Promise.allSettled(closing).then(() => process.kill(process.pid, signal));
}

function onUncaught(error: unknown): void {
  note({ status: "errored", detail: error instanceof Error ? error.message : String(error) });
}

function note(end: SessionEnd): void {
  for (const watch of watches) watch.seen ??= end;
}
