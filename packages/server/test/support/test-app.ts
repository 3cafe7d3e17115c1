import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  decodeJson,
  encodeJson,
  routes,
  stringifyJson,
  type Route,
  type RouteName,
  type WireInput,
  type WireTypeName,
  type WireValue,
} from "tinker-ts/wire";
import { openApp, type App } from "../../src/app.js";
import type { EngineKit } from "../../src/engine-port/engine-kit.js";
import { createLogger } from "../../src/log/logger.js";
import type { AppOptions } from "../../src/options.js";
import type { Clock } from "../../src/time/clock.js";
import { ToyEngine, toyKit } from "./toy-engine.js";

type RouteOf<N extends RouteName> = (typeof routes)[N];
type BodyInput<N extends RouteName> =
  RouteOf<N> extends {
    readonly request: infer T extends WireTypeName;
  }
    ? WireInput<T>
    : null;
type Answer<N extends RouteName> =
  RouteOf<N> extends {
    readonly response: infer T extends WireTypeName;
  }
    ? WireValue<T>
    : null;

/** What a test may set. */
export interface TestAppOptions extends AppOptions {
  readonly engine?: ToyEngine;
  /** Something else than the toy. */
  readonly kit?: EngineKit;
  readonly clock?: Clock;
}

/** Where and as whom to call. */
export interface CallOptions {
  readonly key?: string;
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** An application over a toy engine, with a caller for every endpoint. */
export class TestApp {
  readonly engine: ToyEngine;
  readonly dataDir: string;
  readonly logLines: string[] = [];
  readonly #options: TestAppOptions;
  #app: App | undefined;

  private constructor(options: TestAppOptions) {
    this.#options = options;
    this.engine = options.engine ?? new ToyEngine();
    this.dataDir = options.dataDir ?? mkdtempSync(path.join(tmpdir(), "tinker-ts-server-"));
  }

  static async open(options: TestAppOptions = {}): Promise<TestApp> {
    const test = new TestApp(options);
    await test.start();
    return test;
  }

  async start(): Promise<void> {
    this.#app = await openApp(
      {
        models: { toy: "/models/toy" },
        logger: createLogger("debug", (line) => this.logLines.push(line)),
        ...this.#options,
        dataDir: this.dataDir,
      },
      {
        allowAnyModel: false,
        logLevel: "silent",
        closesOldSessions: false,
        kind: "server",
        loadKit: async () => this.#options.kit ?? toyKit(this.engine),
        ...(this.#options.clock ? { clock: this.#options.clock } : {}),
      },
    );
  }

  async stop(): Promise<void> {
    await this.#app?.close();
    this.#app = undefined;
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  async dispose(): Promise<void> {
    this.engine.gates.openAll();
    await this.stop();
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  handle(request: Request): Promise<Response> {
    if (!this.#app) throw new Error("the application is not open");
    return this.#app.handle(request);
  }

  /** Calls an endpoint and returns the raw response. */
  fetch<N extends RouteName>(
    name: N,
    body: BodyInput<N>,
    options: CallOptions = {},
  ): Promise<Response> {
    const route: Route = routes[name];
    const target = route.path.replace(
      /\{(\w+)\}/g,
      (_, key: string) => options.params?.[key] ?? "",
    );
    const query = new URLSearchParams(options.query).toString();
    return this.handle(
      new Request(`http://localhost${target}${query ? `?${query}` : ""}`, {
        method: route.method,
        headers: {
          "content-type": "application/json",
          ...(options.key ? { "x-api-key": options.key } : {}),
          ...options.headers,
        },
        ...(options.signal ? { signal: options.signal } : {}),
        ...(route.request === null
          ? {}
          : { body: stringifyJson(encodeJson(route.request, body as never)) }),
      }),
    );
  }

  /** Calls an endpoint that must succeed and returns its typed answer. */
  async call<N extends RouteName>(
    name: N,
    body: BodyInput<N>,
    options: CallOptions = {},
  ): Promise<Answer<N>> {
    const response = await this.fetch(name, body, options);
    const text = await response.text();
    if (!response.ok) throw new Error(`${name} answered ${response.status}: ${text}`);
    const type = (routes[name] as Route).response;
    return (type === null ? null : decodeJson(type, text)) as Answer<N>;
  }

  /** Opens a session. */
  async session(options: CallOptions = {}): Promise<string> {
    const body = { tags: [], userMetadata: {}, sdkVersion: "0.25.0" };
    return (await this.call("createSession", body, options)).sessionId;
  }

  /** Waits for the result of a request, as JSON. */
  async result(requestId: string, options: CallOptions = {}): Promise<Record<string, unknown>> {
    for (;;) {
      const response = await this.fetch("retrieveFuture", { requestId }, options);
      if (response.status === 408) continue;
      const text = await response.text();
      if (!response.ok) throw new Error(`retrieve answered ${response.status}: ${text}`);
      return JSON.parse(text) as Record<string, unknown>;
    }
  }

  /** Creates a model and waits for it. */
  async model(sessionId: string, options: CallOptions & { seq?: number; seed?: number } = {}) {
    const { requestId, modelId } = await this.call(
      "createModel",
      {
        sessionId,
        modelSeqId: options.seq ?? 0,
        baseModel: "toy",
        loraConfig: { rank: 8, seed: options.seed ?? 1 },
      },
      options,
    );
    const result = await this.result(requestId, options);
    if ("error" in result) throw new Error(String(result["error"]));
    return modelId!;
  }
}

/** A forward/backward body over rows of tokens. */
export function passBody(
  modelId: string,
  seqId: number | null,
  rows: readonly (readonly number[])[],
): WireInput<"ForwardBackwardRequest"> {
  return {
    modelId,
    seqId,
    forwardBackwardInput: {
      data: rows.map((tokens) => ({
        modelInput: tokens,
        lossFnInputs: { target_tokens: [...tokens], weights: tokens.map(() => 1) },
      })),
      lossFn: "cross_entropy",
    },
  };
}
