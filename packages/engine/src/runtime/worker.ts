// The engine's worker thread: answers calls of its owner until it is closed.
import { parentPort, workerData } from "node:worker_threads";
import { EngineError } from "../errors.js";
import { EngineCore } from "./engine-core.js";
import type { CallName, ErrorMessage, FromWorker, ToWorker, WorkerSettings } from "./protocol.js";

if (parentPort === null) throw new Error("this file runs in a worker thread");
const port = parentPort;
const settings: WorkerSettings = workerData;
const core = new EngineCore(settings);
const calls = new Map<number, AbortController>();

port.on("message", (message: ToWorker) => {
  if (message.kind === "call") void answer(message);
  else if (message.kind === "cancel") calls.get(message.id)?.abort();
  else void close();
});

async function answer(message: Extract<ToWorker, { kind: "call" }>): Promise<void> {
  const { id } = message;
  const controller = new AbortController();
  calls.set(id, controller);
  try {
    const response = await dispatch(message, controller.signal);
    send({ kind: "response", id, response }, ownedBuffers(response));
  } catch (error) {
    send({ kind: "error", id, error: errorMessage(error, controller.signal.aborted) });
  } finally {
    calls.delete(id);
  }
}

function dispatch<K extends CallName>(
  message: Extract<ToWorker, { kind: "call" }> & { name: K },
  signal: AbortSignal,
) {
  const { id, name, request, hasListener } = message;
  return core.handlers[name](request, {
    signal,
    emit: hasListener ? (event) => send({ kind: "event", id, event }) : undefined,
  });
}

async function close(): Promise<void> {
  for (const controller of calls.values()) controller.abort();
  await core.close();
  port.close();
}

function send(message: FromWorker, transfer: ArrayBuffer[] = []): void {
  port.postMessage(message, transfer);
}

function errorMessage(error: unknown, aborted: boolean): ErrorMessage {
  if (error instanceof EngineError) {
    const { message, code, category, stack } = error;
    return { message, code, category, stack, aborted: false };
  }
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return { message, stack, aborted };
}

/** Buffers of typed arrays in a value that nothing else shares, so that they can change threads. */
function ownedBuffers(value: unknown): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  collect(value, buffers);
  return [...buffers];
}

function collect(value: unknown, buffers: Set<ArrayBuffer>): void {
  if (ArrayBuffer.isView(value)) {
    const { buffer, byteLength } = value;
    if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffers.add(buffer);
  } else if (value instanceof Map || Array.isArray(value)) {
    for (const item of value.values()) collect(item, buffers);
  } else if (typeof value === "object" && value !== null) {
    for (const item of Object.values(value)) collect(item, buffers);
  }
}
