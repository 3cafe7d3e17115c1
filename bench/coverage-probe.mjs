// Counts the files and functions of this repository that a process executes, its worker threads included.
// `node --import bench/coverage-probe.mjs PROGRAM` answers the messages "begin" and "end" of its parent process;
// a program that imports it calls `begin` and `end` itself.
import { Session } from "node:inspector/promises";
import { isMainThread } from "node:worker_threads";

const session = new Session();
/** By inspector session id of a worker: the calls that wait for their answer, by call id. */
const workers = new Map();
let calls = 0;

session.on("NodeWorker.attachedToWorker", ({ params: { sessionId } }) => {
  workers.set(sessionId, new Map());
  void ask(sessionId, "Profiler.enable");
  void ask(sessionId, "Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  void ask(sessionId, "Runtime.runIfWaitingForDebugger");
});
session.on("NodeWorker.detachedFromWorker", ({ params: { sessionId } }) => {
  const waiting = workers.get(sessionId);
  workers.delete(sessionId);
  for (const resolve of waiting?.values() ?? []) resolve(undefined);
});
session.on("NodeWorker.receivedMessageFromWorker", ({ params: { sessionId, message } }) => {
  const { id, result } = JSON.parse(message);
  const waiting = workers.get(sessionId);
  waiting?.get(id)?.(result);
  waiting?.delete(id);
});
// Threads inherit `--import`; the session of the main thread counts what they execute.
if (isMainThread) {
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await session.post("NodeWorker.enable", { waitForDebuggerOnStart: true });
}

function ask(sessionId, method, params) {
  const id = ++calls;
  const answered = new Promise((resolve) => workers.get(sessionId).set(id, resolve));
  const message = JSON.stringify({ id, method, params });
  void session.post("NodeWorker.sendMessageToWorker", { sessionId, message });
  return answered;
}

/** Reads all counters and sets them back to zero. */
async function take() {
  const results = await Promise.all([
    session.post("Profiler.takePreciseCoverage"),
    ...[...workers.keys()].map((sessionId) => ask(sessionId, "Profiler.takePreciseCoverage")),
  ]);
  return results.flatMap((result) => result?.result ?? []);
}

/** Starts counting anew. */
export async function begin() {
  await take();
}

/** The functions executed since `begin`, by file and offset, of modules below `packages/NAME/dist`. */
export async function end() {
  const executed = {};
  for (const { url, functions } of await take()) {
    const file = /packages\/[^/]+\/dist\/.*\.js$/.exec(url)?.[0];
    if (!file) continue;
    for (const { functionName, ranges } of functions) {
      const [{ count, startOffset }] = ranges;
      // The module itself, which runs when it is loaded.
      if (count === 0 || (functionName === "" && startOffset === 0)) continue;
      executed[`${file}:${startOffset}`] = { file, name: functionName };
    }
  }
  return executed;
}

if (isMainThread && process.send) {
  process.on("message", (message) => {
    if (message === "begin") void begin().then(() => process.send({ begun: true }));
    if (message === "end") void end().then((executed) => process.send({ executed }));
  });
  // The program ends when nothing else keeps it running.
  process.channel.unref();
}
