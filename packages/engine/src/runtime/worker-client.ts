import { Worker } from "node:worker_threads";
import { EngineError } from "../errors.js";
import { NativeCalls } from "../execution/native-calls.js";
import { Deferred } from "../util/turns.js";
import type {
  CallName,
  EngineCalls,
  ErrorMessage,
  FromWorker,
  ToWorker,
  WorkerSettings,
} from "./protocol.js";

/** Options of a call. */
export interface CallOptions<K extends CallName> {
  readonly signal?: AbortSignal | undefined;
  readonly onEvent?: ((event: EngineCalls[K]["event"]) => void) | undefined;
}

/** Methods, because calls of all kinds are stored together: each receives only its own types. */
interface PendingCall {
  emit(event: unknown): void;
  resolve(response: unknown): void;
  reject(error: unknown): void;
  readonly signal: AbortSignal | undefined;
  stopListening(): void;
}

/**
 * The owner's side of the worker thread.
 *
 * - An aborted call ends when the worker confirms it: until then it may still take effect.
 * - When the worker dies, every pending and every later call fails with the reason.
 * - The worker keeps the process alive only while a call is pending.
 */
export class WorkerClient {
  readonly #worker: Worker;
  readonly #pending = new Map<number, PendingCall>();
  readonly #exited = new Deferred<void>();
  #failure: EngineError | undefined;
  #nextId = 1;

  constructor(settings: Omit<WorkerSettings, "nativeCalls">) {
    const calls = new NativeCalls();
    const workerData: WorkerSettings = { ...settings, nativeCalls: calls.memory };
    this.#worker = new Worker(new URL("./worker.js", import.meta.url), {
      name: "tinker-ts engine",
      // Flags of the process also apply to its threads, V8's too, but naming those here is refused. So is
      // `node --input-type=module --eval` in a thread: that flag concerns the main program only.
      execArgv: process.execArgv.some((flag) => flag.startsWith("--input-type")) ? [] : undefined,
      workerData,
    });
    const stop = (): void => calls.stop();
    process.once("exit", stop);
    this.#worker.unref();
    this.#worker.on("message", (message: FromWorker) => this.#receive(inOwnRealm(message)));
    this.#worker.on("error", (error) => this.#fail(crashed(error)));
    this.#worker.on("exit", (code) => {
      process.off("exit", stop);
      this.#fail(crashed(new Error(`the worker thread ended with code ${code}`)));
      this.#exited.resolve();
    });
  }

  /** Resolves when the worker has ended. */
  get exited(): Promise<void> {
    return this.#exited.promise;
  }

  /** Calls the worker. */
  async call<K extends CallName>(
    name: K,
    request: EngineCalls[K]["request"],
    options: CallOptions<K> = {},
  ): Promise<EngineCalls[K]["response"]> {
    const { signal, onEvent } = options;
    signal?.throwIfAborted();
    if (this.#failure !== undefined) throw this.#failure;
    const id = this.#nextId++;
    const cancel = (): void => this.#post({ kind: "cancel", id });
    signal?.addEventListener("abort", cancel, { once: true });
    const result = new Deferred<EngineCalls[K]["response"]>();
    this.#pending.set(id, {
      emit: (event: EngineCalls[K]["event"]) => onEvent?.(event),
      resolve: (response: EngineCalls[K]["response"]) => result.resolve(response),
      reject: (error) => result.reject(error),
      signal,
      stopListening: () => signal?.removeEventListener("abort", cancel),
    });
    this.#worker.ref();
    try {
      const hasListener = onEvent !== undefined;
      this.#worker.postMessage({ kind: "call", id, name, request, hasListener }, []);
    } catch (error) {
      // Values that cannot be cloned to another thread, such as a function among the data.
      this.#receive({ kind: "error", id, error: uncopyable(error) });
    }
    return result.promise;
  }

  /** Cancels everything and ends the worker. */
  async close(): Promise<void> {
    if (this.#failure === undefined) {
      this.#post({ kind: "close" });
      this.#fail(new EngineError("engine_closed", "the engine was closed."));
      this.#worker.ref();
    }
    await this.#exited.promise;
  }

  #post(message: ToWorker): void {
    this.#worker.postMessage(message, []);
  }

  #receive(message: FromWorker): void {
    const call = this.#pending.get(message.id);
    if (call === undefined) return;
    if (message.kind === "event") {
      call.emit(message.event);
      return;
    }
    this.#settle(message.id, call);
    if (message.kind === "response") call.resolve(message.response);
    else call.reject(errorFrom(message.error, call.signal));
  }

  #fail(error: EngineError): void {
    this.#failure ??= error;
    for (const [id, call] of this.#pending) {
      this.#settle(id, call);
      call.reject(this.#failure);
    }
  }

  #settle(id: number, call: PendingCall): void {
    this.#pending.delete(id);
    call.stopListening();
    if (this.#pending.size === 0) this.#worker.unref();
  }
}

function crashed(cause: Error): EngineError {
  // The worker never started, and a new one would not either.
  if ("code" in cause && cause.code === "runtime_missing") {
    return new EngineError("runtime_missing", cause.message, { category: "internal", cause });
  }
  return new EngineError(
    "engine_failed",
    `the engine has stopped working: ${cause.message}. Create a new one and load its models again.`,
    { category: "internal", cause },
  );
}

function uncopyable(error: unknown): ErrorMessage {
  const reason = error instanceof Error ? error.message : String(error);
  const message = `the request holds a value that cannot be cloned: ${reason}`;
  return { message, code: "invalid_request", category: "user", aborted: false };
}

function errorFrom(error: ErrorMessage, signal: AbortSignal | undefined): unknown {
  if (error.aborted && signal?.aborted === true) return signal.reason;
  const { message, code = "internal_error", category = "internal" } = error;
  const made = new EngineError(code, message, { category });
  if (category === "internal" && error.stack !== undefined) made.stack = error.stack;
  return made;
}

const kinds: Readonly<Record<string, OwnKind | undefined>> = {
  Uint8Array,
  Int8Array,
  Int32Array,
  BigInt64Array,
  Float32Array,
  Float64Array,
};

type OwnKind = new (buffer: ArrayBufferLike, offset: number, length: number) => ArrayBufferView;

/**
 * Converts lists, maps and typed arrays from a thread to classes of this realm, sharing their memory. Messages are made in
 * the realm of the process; Jest and some pools of Vitest run programs in another one, where `instanceof` would fail.
 */
export function inOwnRealm<T>(message: T): T {
  return message instanceof Object ? message : (adopted(message) as T);
}

function adopted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (ArrayBuffer.isView(value)) return adoptedView(value);
  if (Array.isArray(value)) return Array.from(value, adopted);
  if (isMap(value)) {
    return new Map(Array.from(value, ([key, item]) => [adopted(key), adopted(item)]));
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, adopted(item)]));
}

function adoptedView(view: ArrayBufferView): ArrayBufferView {
  const Own = kinds[tagOf(view)];
  if (Own === undefined || !("length" in view)) return view;
  return new Own(view.buffer, view.byteOffset, Number(view.length));
}

function isMap(value: object): value is ReadonlyMap<unknown, unknown> {
  return tagOf(value) === "Map";
}

function tagOf(value: object): string {
  return Symbol.toStringTag in value ? String(value[Symbol.toStringTag]) : "";
}
