import type { ServiceClientOptions } from "tinker-ts";
import { ServiceClient } from "tinker-ts";
import {
  decodeProto,
  encodeJson,
  encodeProto,
  type ProtoTypeName,
  type WireInput,
  type WireTypeName,
} from "tinker-ts/wire";
import {
  bare,
  json,
  proto,
  ScriptedServer,
  type Reply,
  type SeenRequest,
} from "./scripted-server.js";
import { settle, TestClock } from "./test-clock.js";

/** The two forms that a server may speak. */
export type ServerDialect = "proto" | "json";

/** A result that waits to be fetched. */
type StoredResult = { readonly typeName: WireTypeName; readonly value: unknown };

/**
 * A small service behind a `ScriptedServer`: accepts everything, gives every request an id and has its
 * result ready at once. Tests put their own answers in front of it.
 */
export class FakeService {
  readonly server: ScriptedServer;
  readonly clock = new TestClock();
  readonly log: string[] = [];
  /** Flags of the configuration endpoint, by wire name. */
  readonly flags: Record<string, unknown> = {};
  readonly dialect: ServerDialect;
  readonly #results = new Map<string, StoredResult>();
  readonly #clients: ServiceClient[] = [];
  #requestCount = 0;
  #sessionCount = 0;

  private constructor(server: ScriptedServer, dialect: ServerDialect) {
    this.server = server;
    this.dialect = dialect;
    this.#install();
  }

  static async start(dialect: ServerDialect = "proto"): Promise<FakeService> {
    return new FakeService(await ScriptedServer.start(), dialect);
  }

  /** A client of this service on the test's clock; closed with the service. */
  client(options: ServiceClientOptions = {}): ServiceClient {
    const write = (level: string) => (message: string) => void this.log.push(`${level} ${message}`);
    const client = new ServiceClient({
      baseUrl: this.server.url,
      apiKey: "tml-test",
      telemetry: false,
      clock: this.clock,
      random: () => 0,
      env: {},
      logger: {
        debug: write("debug"),
        info: write("info"),
        warn: write("warn"),
        error: write("error"),
      },
      ...options,
    });
    this.#clients.push(client);
    return client;
  }

  /** Keeps a result and returns the answer that accepts its request. */
  accept<N extends WireTypeName>(typeName: N, value: WireInput<N>): Reply {
    const requestId = `request-${this.#requestCount++}`;
    this.#results.set(requestId, { typeName, value });
    return json({ request_id: requestId });
  }

  /** The response to a poll with a ready result. */
  result(request: SeenRequest): Reply {
    const stored = this.#results.get(String(request.json?.["request_id"]));
    if (!stored) return json({ detail: "unknown request" }, 404);
    return this.encode(stored.typeName, stored.value);
  }

  /** A result in the dialect of this service. */
  encode(typeName: WireTypeName, value: unknown): Reply {
    const hasProto = typeName === "SampleResponse" || typeName === "ForwardBackwardOutput";
    return this.dialect === "proto" && hasProto
      ? proto(encodeProto(typeName as ProtoTypeName, value as never))
      : json(encodeJson(typeName, value as never));
  }

  /** Closes everything and fails when a client left something behind. */
  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
    let open = await this.server.connectionCount();
    // The end of a connection takes a moment to reach the server.
    for (let round = 0; open > 0 && round < 100; round++) {
      await settle();
      open = await this.server.connectionCount();
    }
    await this.server.close();
    if (this.clock.pending > 0) throw new Error(`${this.clock.pending} timers were left behind`);
    if (open > 0) throw new Error(`${open} connections were left open`);
  }

  #install(): void {
    const { server } = this;
    // A server that speaks JSON only is usually too old to have flags.
    const hasConfig = () => this.dialect === "proto" || Object.keys(this.flags).length > 0;
    server.handle("clientConfig", () => (hasConfig() ? json(this.flags) : bare(404)));
    server.handle("clientDynamicConfig", () =>
      hasConfig() ? json({ refresh_interval_sec: 300 }) : bare(404),
    );
    server.handle("createSession", () => json({ session_id: `session-${this.#sessionCount++}` }));
    server.handle("sessionHeartbeat", () => json({ type: "session_heartbeat" }));
    server.handle("telemetry", () => json({ status: "accepted" }));
    server.handle("createModel", ({ json: body }) =>
      this.accept("CreateModelResponse", {
        modelId: `${text(body, "session_id")}:train:${text(body, "model_seq_id")}`,
      }),
    );
    server.handle("createSamplingSession", ({ json: body }) =>
      json({
        sampling_session_id: `${text(body, "session_id")}:sample:${text(body, "sampling_session_seq_id")}`,
      }),
    );
    server.handle("forwardBackward", (request) => this.#pass(request));
    server.handle("forward", (request) => this.#pass(request));
    server.handle("optimStep", () =>
      this.accept("OptimStepResponse", { metrics: { "lr:mean": 1 } }),
    );
    server.handle("saveWeights", ({ json: body }) =>
      this.accept("SaveWeightsResponse", {
        path: `tinker://run/weights/${text(body, "path")}`,
      }),
    );
    server.handle("saveWeightsForSampler", ({ json: body }) =>
      this.accept(
        "SaveWeightsForSamplerResponseInternal",
        body?.["path"] === undefined
          ? { samplingSessionId: `session-0:sample:${text(body, "sampling_session_seq_id")}` }
          : { path: `tinker://run/sampler_weights/${text(body, "path")}` },
      ),
    );
    server.handle("loadWeights", ({ json: body }) =>
      this.accept("LoadWeightsResponse", { path: text(body, "path") }),
    );
    server.handle("unloadModel", ({ json: body }) =>
      this.accept("UnloadModelResponse", { modelId: text(body, "model_id") }),
    );
    server.handle("sample", () =>
      this.accept("SampleResponse", {
        sequences: [{ stopReason: "stop", tokens: [7, 8], logprobs: [-0.5, -1] }],
        promptLogprobs: [null, -2],
      }),
    );
    server.handle("retrieveFuture", (request) => this.result(request));
  }

  /** One output with as many zero logprobs as the datum has targets. */
  #pass(request: SeenRequest): Reply {
    const isProto = request.headers["content-type"] === "application/x-protobuf";
    if (isProto && this.dialect === "json") return json({ detail: "unsupported media type" }, 415);
    const counts = isProto ? protoTargetCounts(request) : jsonTargetCounts(request);
    return this.accept("ForwardBackwardOutput", {
      lossFnOutputType: "TorchLossReturn",
      lossFnOutputs: counts.map((count) => ({ logprobs: { data: new Float32Array(count) } })),
      metrics: { "loss:sum": counts.length },
    });
  }
}

function text(body: Record<string, unknown> | undefined, name: string): string {
  const value = body?.[name];
  return typeof value === "number" ? String(value) : typeof value === "string" ? value : "";
}

function protoTargetCounts({ body }: SeenRequest): number[] {
  const { forwardBackwardInput } = decodeProto("ForwardBackwardRequest", body);
  return forwardBackwardInput.data.map(
    ({ lossFnInputs }) => lossFnInputs["target_tokens"]?.data.length ?? 0,
  );
}

function jsonTargetCounts({ json: body }: SeenRequest): number[] {
  type Input = { data: { loss_fn_inputs: { target_tokens?: { data: unknown[] } } }[] };
  const input = (body?.["forward_backward_input"] ?? body?.["forward_input"]) as Input;
  return input.data.map((datum) => datum.loss_fn_inputs.target_tokens?.data.length ?? 0);
}
