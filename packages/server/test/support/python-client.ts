import { decodeProto, encodeProto, type WireInput } from "tinker-ts/wire";

type Json = Record<string, unknown>;

/** Versions of the official Python client, each with what it sends in every request of a kind. */
export const pythonVersions = ["0.26.2", "0.29.0", "0.32.0", "0.33.0", "0.39.0"] as const;
export type PythonVersion = (typeof pythonVersions)[number];

/** What is spoken with, and as whom. */
export interface PythonClientOptions {
  readonly version?: PythonVersion;
  readonly apiKey?: string;
  /** Fields of some version to come, which go into every request and the objects inside. */
  readonly extra?: Json;
}

/** An answer of the server. */
export interface Answer {
  readonly status: number;
  readonly body: Json;
  readonly text: string;
}

/** Speaks as the official Python client does: raw bodies over HTTP with all their defaults, nulls left out. */
export class PythonClient {
  readonly #url: string;
  readonly #version: PythonVersion;
  readonly #apiKey: string;
  readonly #extra: Json;

  constructor(
    url: string,
    { version = "0.39.0", apiKey = "tml-key", extra = {} }: PythonClientOptions = {},
  ) {
    this.#url = url;
    this.#version = version;
    this.#apiKey = apiKey;
    this.#extra = extra;
  }

  /** Whether this version already sends what came with another one. */
  has(since: string): boolean {
    return this.#version.localeCompare(since, "en", { numeric: true }) >= 0;
  }

  async send(
    method: string,
    path: string,
    body?: Uint8Array | Json,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const isBytes = body instanceof Uint8Array;
    const response = await fetch(this.#url + path, {
      method,
      headers: {
        "user-agent": `AsyncTinker/Python ${this.#version}`,
        "x-stainless-package-version": this.#version,
        "x-api-key": this.#apiKey,
        "content-type": isBytes ? "application/x-protobuf" : "application/json",
        ...headers,
      },
      ...(body === undefined ? {} : { body: isBytes ? Buffer.from(body) : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") ?? false;
    return { status: response.status, text, body: isJson ? (JSON.parse(text) as Json) : {} };
  }

  post(path: string, body: Uint8Array | Json, headers?: Readonly<Record<string, string>>) {
    return this.send("POST", `/api/v1/${path}`, body, headers);
  }

  get(path: string): Promise<Answer> {
    return this.send("GET", `/api/v1/${path}`);
  }

  /** Sends what must be accepted and returns the body of the answer. */
  async must(path: string, body: Uint8Array | Json): Promise<Json> {
    const answer = await this.post(path, body);
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${answer.text}`);
    return answer.body;
  }

  /** Polls until a request has ended; a failed one answers its `error` and `category`. */
  async result(receipt: Json): Promise<Json> {
    for (;;) {
      const answer = await this.post("retrieve_future", { request_id: receipt["request_id"] });
      if (answer.status === 408) continue;
      if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.text}`);
      return answer.body;
    }
  }

  /** Sends a request for a future and waits for its end. */
  async run(path: string, body: Uint8Array | Json): Promise<Json> {
    return this.result(await this.must(path, body));
  }

  /** Opens a session. */
  async session(fields: Json = {}): Promise<string> {
    const body = {
      ...this.#extra,
      tags: ["conformance"],
      user_metadata: { purpose: "test" },
      sdk_version: this.#version,
      type: "create_session",
      ...fields,
    };
    return String((await this.must("create_session", body))["session_id"]);
  }

  createModel(sessionId: string, fields: Json = {}): Json {
    return {
      ...this.#extra,
      session_id: sessionId,
      model_seq_id: 0,
      base_model: "qwen3",
      lora_config: {
        ...this.#extra,
        rank: 2,
        seed: 7,
        train_unembed: true,
        train_mlp: true,
        train_attn: true,
      },
      ...(this.has("0.29.0") ? { optimizer_config: { ...this.#extra, type: "adamw" } } : {}),
      type: "create_model",
      ...fields,
    };
  }

  /** Makes a model and returns its id. */
  async model(sessionId: string, fields: Json = {}): Promise<string> {
    return String(
      (await this.run("create_model", this.createModel(sessionId, fields)))["model_id"],
    );
  }

  /** A pass, which is protobuf in all versions. */
  pass(modelId: string, seqId: number, input: Partial<WireInput<"ForwardBackwardInput">> = {}) {
    return encodeProto("ForwardBackwardRequest", {
      modelId,
      seqId,
      forwardBackwardInput: {
        data: [
          [5, 8, 13, 21],
          [3, 6, 9],
        ].map((tokens) => ({
          modelInput: tokens.slice(0, -1),
          lossFnInputs: { target_tokens: tokens.slice(1), weights: tokens.slice(1).map(() => 1) },
        })),
        lossFn: "cross_entropy",
        ...input,
      },
    });
  }

  optimStep(modelId: string, seqId: number): Json {
    const adam = { beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0, grad_clip_norm: 0 };
    const adam_params = { ...this.#extra, learning_rate: 0.01, ...adam };
    return { ...this.#extra, adam_params, model_id: modelId, seq_id: seqId, type: "optim_step" };
  }

  saveWeights(modelId: string, seqId: number, fields: Json = {}): Json {
    const ids = { model_id: modelId, seq_id: seqId };
    return { ...this.#extra, ...ids, overwrite: false, type: "save_weights", ...fields };
  }

  saveForSampler(modelId: string, seqId: number, fields: Json = {}): Json {
    const ids = { model_id: modelId, seq_id: seqId };
    return { ...this.#extra, ...ids, type: "save_weights_for_sampler", ...fields };
  }

  loadWeights(fields: Json): Json {
    return { ...this.#extra, optimizer: false, type: "load_weights", ...fields };
  }

  sample(samplerId: string, seqId: number, fields: Json = {}): Json {
    return {
      ...this.#extra,
      num_samples: 2,
      prompt: {
        ...this.#extra,
        chunks: [{ ...this.#extra, tokens: [5, 8, 13], type: "encoded_text" }],
      },
      sampling_params: {
        ...this.#extra,
        max_tokens: 4,
        seed: 11,
        temperature: 1,
        top_k: -1,
        top_p: 1,
      },
      sampling_session_id: samplerId,
      seq_id: seqId,
      topk_prompt_logprobs: 0,
      record_stability_info: false,
      ...(this.has("0.28.0") ? { topk_sample_logprobs: 0 } : {}),
      ...(this.has("0.31.0") ? { prompt_alt_tokens_k: 0 } : {}),
      type: "sample",
      ...fields,
    };
  }

  /** Opens a sampling session on the base model or on saved weights. */
  async sampler(sessionId: string, seqId: number, modelPath?: unknown): Promise<string> {
    const target = modelPath === undefined ? { base_model: "qwen3" } : { model_path: modelPath };
    const ids = { session_id: sessionId, sampling_session_seq_id: seqId };
    const type = "create_sampling_session";
    const answer = await this.must(type, { ...this.#extra, ...ids, ...target, type });
    return String(answer["sampling_session_id"]);
  }

  finish(sessionId: string, type = "success", detail: string | null = null): Promise<Answer> {
    const reason = { ...this.#extra, type };
    return this.post(`sessions/${sessionId}/finish`, { ...this.#extra, reason, detail });
  }

  heartbeat(sessionId: string): Promise<Answer> {
    const body = { ...this.#extra, session_id: sessionId, type: "session_heartbeat" };
    return this.post("session_heartbeat", body);
  }

  /** A sample result as newer clients read it: in protobuf only. */
  async sampled(receipt: Json) {
    for (;;) {
      const response = await fetch(`${this.#url}/api/v1/retrieve_future`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "x-api-key": this.#apiKey,
          accept: "application/x-protobuf, application/json",
        },
        body: JSON.stringify({ request_id: receipt["request_id"], allow_metadata_only: true }),
      });
      if (response.status === 408) continue;
      if (response.headers.get("content-type") !== "application/x-protobuf") {
        throw new Error(`${response.status}: ${await response.text()}`);
      }
      return decodeProto("SampleResponse", new Uint8Array(await response.arrayBuffer()));
    }
  }
}
