import type { FakeService } from "./fake-service.js";
import { json, type SeenRequest } from "./scripted-server.js";

/*
 * Servers of others, as their sources show them: what they answer where it differs from the service that `FakeService`
 * is. Each was written from the named repository, commit and file, and no code of theirs is here.
 */

const missing = () => json({ detail: "Not Found" }, 404);

/** Handles every later route of the API as a server does that has none of them. */
function lacks(service: FakeService, ...names: Parameters<typeof service.server.handle>[0][]) {
  for (const name of names) service.server.handle(name, missing);
}

/**
 * SkyRL: NovaSky-AI/SkyRL, commit 00955430, skyrl/tinker/api.py.
 * - `ClientConfigResponse` is a stub of three flags; there is no `client/dynamic_config`.
 * - `LoRAConfig` has rank and seed, other fields are ignored; `create_model` gives alpha 32.
 * - `get_server_capabilities` answers `supported_loss_fns`.
 * - `AdamParams` has no `grad_clip_norm`.
 * - `asample` answers `FutureResponse` without names of sequences, 404 `Sampling session not found`.
 * - `retrieve_future` answers a failed request with 400 and `detail`.
 * - `get_info` answers the rank within `model_data.lora_config` alone.
 * The refusal of a load is recorded in test/fixtures/skyrl-recording.json.
 */
export function skyrl(service: FakeService): void {
  const { server } = service;
  // The third one, proto_compress_fwdbwd, is left out: this service does not unpack.
  server.handle("clientConfig", () => json({ pjwt_auth_enabled: false, proto_write_fwdbwd: true }));
  lacks(service, "clientDynamicConfig", "finishSession", "copyWeights", "listUserCheckpoints");
  server.handle("getServerCapabilities", () =>
    json({ supported_models: [{ model_name: "m" }], supported_loss_fns: ["cross_entropy"] }),
  );
  server.handle("getInfo", ({ json: body }) =>
    json({
      model_id: body?.["model_id"],
      status: "created",
      model_data: { base_model: "m", lora_config: { rank: 8, seed: null }, model_name: "m" },
    }),
  );
  let models = 0;
  server.handle("createModel", () =>
    service.accept("CreateModelResponse", { modelId: `model_${models++}` }),
  );
  server.handle("optimStep", () =>
    service.accept("OptimStepResponse", { metrics: { "skyrl.ai/grad_norm": 3 } }),
  );
  const isFirst = ({ json: body }: SeenRequest) => body?.["seq_id"] === 1;
  server.handle("loadWeights", (request) =>
    isFirst(request)
      ? service.accept("LoadWeightsResponse", { path: String(request.json?.["path"]) })
      : json(
          {
            detail: `LoadWeights is not permitted with seq_id ${String(request.json?.["seq_id"])}`,
          },
          400,
        ),
  );
}

/**
 * OpenRL: gke-labs/open-rl, commit 082e1cc3, server/src/gateway.py.
 * - No `client/config`; bodies are plain dictionaries, so that unknown fields are ignored.
 * - `get_server_capabilities` answers `default_model` and `single_process`.
 * - `get_info` answers a rank of 16 whatever was asked for.
 * - `asample` reads `max_tokens` (20 by default), `temperature` and `num_samples` of the parameters, and no
 *   others; the result has no prompt logprobs.
 * - A failed request is 400 with `type: RequestFailedResponse` and `error_message`; other errors are `{"error"}`.
 */
export function openRl(service: FakeService): void {
  const { server } = service;
  lacks(service, "clientConfig", "clientDynamicConfig", "finishSession", "loadWeights");
  server.handle("getServerCapabilities", () =>
    json({ supported_models: [{ model_name: "m" }], default_model: "m", single_process: true }),
  );
  server.handle("getInfo", ({ json: body }) =>
    json({
      model_data: { arch: "unknown", model_name: "m", tokenizer_id: "m" },
      model_id: body?.["model_id"],
      is_lora: true,
      lora_rank: 16,
      model_name: "m",
      type: "get_info",
    }),
  );
  server.handle("sample", ({ json: body }) => {
    const { max_tokens: asked } = (body?.["sampling_params"] ?? {}) as { max_tokens?: number };
    const tokens = Array.from({ length: asked ?? 20 }, () => 7);
    return service.accept("SampleResponse", {
      sequences: [{ stopReason: "length", tokens, logprobs: tokens.map(() => -1) }],
    });
  });
}

/**
 * Miles: radixark/miles, commit 074def23, miles/tinker/server/app.py; 0b3ae661, miles/tinker/server/encoding.py.
 * - Both configurations are `{}`; models are `trainable` and `sampleable`.
 * - `asample` names the sequences; there is `cancel_future`, and no REST beyond `weights_info`.
 * - User errors are 400 `{"error"}`, those of owners 403.
 * - Tensors of loss inputs have one dimension.
 */
export function miles(service: FakeService): void {
  const { server } = service;
  server.handle("clientConfig", () => json({}));
  server.handle("clientDynamicConfig", () => json({}));
  lacks(service, "finishSession", "copyWeights", "listTrainingRuns", "listUserCheckpoints");
  server.handle("getServerCapabilities", () =>
    json({ supported_models: [{ model_name: "m", trainable: true, sampleable: true }] }),
  );
  server.handle("getInfo", ({ json: body }) =>
    json({
      type: "get_info",
      model_id: body?.["model_id"],
      model_name: "m",
      is_lora: true,
      lora_rank: 8,
      model_data: { model_name: "m" },
    }),
  );
  server.handle("forwardBackward", () =>
    json({ error: "multi-target inputs are not supported; loss_fn_inputs must be 1-D" }, 400),
  );
}

/**
 * tinker-cloud: GMISWE/tinker-cloud, commits 8648c6e3 training/routers/session.py, 0930f81c training/api.py and
 * training/routers/sampling.py, 1607b88b training/routers/models.py.
 * - Errors are `{error, status_code, path}`.
 * - The flags for batch polling and cancelling are on; `join_sampling_session` and `sessions/{id}/finish` are there.
 * - A bare base model cannot be sampled: 400.
 * - Ids of models are not those of the session.
 */
export function tinkerCloud(service: FakeService): void {
  const { server } = service;
  const refuse = (error: string, status: number) =>
    json({ error, status_code: status, path: "/api/v1" }, status);
  server.handle("clientConfig", () => json({ sample_use_retrieve_futures: true }));
  server.handle("clientDynamicConfig", () => json({ sample_cancel_enabled: true }));
  server.handle("getServerCapabilities", () => json({ supported_models: [{ model_name: "m" }] }));
  server.handle("createModel", () => service.accept("CreateModelResponse", { modelId: "m-1" }));
  server.handle("finishSession", () => json({ session_id: "s", reason: "success" }));
  server.handle("cancelFuture", () => json({ status: "ok" }));
  server.handle("createSamplingSession", ({ json: body }) =>
    body?.["base_model"] === undefined
      ? json({ sampling_session_id: "s_0_ab" })
      : refuse("base-model sampling is not supported by this deployment", 400),
  );
  server.handle("copyWeights", () => refuse("Not Found", 404));
}

/**
 * TuFT: agentscope-ai/TuFT, commit 008c3bff, src/tuft/server.py.
 * - No configuration endpoints and no protobuf: `forward` and `forward_backward` read JSON.
 * - Receipts come with 202 and sessions with 201; a key is needed, errors are `detail`.
 * - Errors of a new model or sampler are 500 with the words in `detail`.
 */
export function tuft(service: FakeService): void {
  const { server } = service;
  lacks(service, "clientConfig", "clientDynamicConfig", "finishSession", "copyWeights");
  server.handle("getServerCapabilities", () => json({ supported_models: [{ model_name: "m" }] }));
  server.handle("createSession", () =>
    json({ type: "create_session", session_id: "session-0" }, 201),
  );
}

/**
 * Twinkle: modelscope/twinkle, commits 0da67ef6 src/twinkle/server/gateway/tinker_handlers.py, 049fd6ee
 * src/twinkle/server/model/tinker_handlers.py and src/twinkle/server/sampler/tinker_handlers.py.
 * - No configuration endpoints; paths stand behind a prefix of the deployment.
 * - `LoraConfig(r=rank, target_modules="all-linear")`: rank is all that is read of an adapter.
 * - The pass answers `loss:avg` in place of `loss:sum`.
 * - `max_tokens` is 256 by default; seeds of samples are not read; prompt logprobs may be missing.
 */
export function twinkle(service: FakeService): void {
  const { server } = service;
  lacks(service, "clientConfig", "clientDynamicConfig", "finishSession", "copyWeights");
  server.handle("getServerCapabilities", () => json({ supported_models: [{ model_name: "m" }] }));
  server.handle("getInfo", ({ json: body }) =>
    json({ model_id: body?.["model_id"], model_data: { model_name: "m" }, lora_rank: 8 }),
  );
  server.handle("forwardBackward", () =>
    service.accept("ForwardBackwardOutput", {
      lossFnOutputType: "CrossEntropyLossReturn",
      lossFnOutputs: [{ logprobs: { data: new Float32Array([-1, -2]) } }],
      metrics: { "loss:avg": 1.5 },
    }),
  );
  server.handle("sample", ({ json: body }) => {
    const { max_tokens: asked } = (body?.["sampling_params"] ?? {}) as { max_tokens?: number };
    const tokens = Array.from({ length: asked ?? 256 }, () => 7);
    return service.accept("SampleResponse", {
      sequences: [{ stopReason: "length", tokens, logprobs: tokens.map(() => -1) }],
    });
  });
}
