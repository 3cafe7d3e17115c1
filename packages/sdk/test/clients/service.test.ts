import { ArgumentError, CancelledError, CredentialError, ServiceClient } from "tinker-ts";
import { Agent, request } from "undici";
import { describe, expect } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { bare, drop, hang, json } from "../support/scripted-server.js";
import { datum, serviceTest as it } from "../support/service-test.js";
import { settle } from "../support/test-clock.js";

const endpoints = (service: FakeService) => service.server.seen.map(({ endpoint }) => endpoint);

const jwt = (claims: Record<string, unknown>) =>
  `eyJhbGciOiJub25lIn0.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;

describe("making a client", () => {
  it("sends nothing", async ({ service }) => {
    service.client();
    await settle();
    expect(service.server.seen).toEqual([]);
  });

  it.for([
    [{ apiKey: "" }, CredentialError, /local:/],
    [{ apiKey: "sk-1" }, CredentialError, /tml-/],
    [{ apiKey: "tml-x", baseUrl: "nonsense" }, ArgumentError, /^baseUrl: /],
    [{ apiKey: "tml-x", timeoutMs: -1 }, ArgumentError, /^timeoutMs: /],
    [{ apiKey: "tml-x", maxRetries: 1.5 }, ArgumentError, /^maxRetries: /],
  ] as const)("with %j is refused", ([options, Class, message]) => {
    const make = () => new ServiceClient({ env: {}, ...options });
    expect(make).toThrow(Class);
    expect(make).toThrow(message);
  });

  it("needs no key for a server of one's own, and sends none", async ({ service }) => {
    const client = service.client({ apiKey: undefined });
    await client.createSamplingClient({ baseModel: "m" });
    expect(service.server.seen[0]!.headers).not.toHaveProperty("x-api-key");
  });

  it("takes everything from the environment", async ({ service }) => {
    const client = service.client({
      baseUrl: undefined,
      apiKey: undefined,
      env: {
        TINKER_BASE_URL: `${service.server.url}/pre/`,
        TINKER_API_KEY: "tml-env",
        TINKER_PROJECT_ID: "p1",
        TINKER_TAGS: "a, b,a,,",
        CLOUDFLARE_ACCESS_CLIENT_ID: "cf-id",
        CLOUDFLARE_ACCESS_CLIENT_SECRET: "cf-secret",
      },
    });
    await client.createSamplingClient({ baseModel: "m" });
    const created = service.server.requestsTo("createSession")[0]!;
    expect(created.path).toBe("/pre/api/v1/create_session");
    expect(created.headers).toMatchObject({
      "x-api-key": "tml-env",
      "cf-access-client-id": "cf-id",
      "cf-access-client-secret": "cf-secret",
    });
    expect(created.json).toEqual({
      tags: ["a", "b"],
      user_metadata: {},
      sdk_version: "0.25.0",
      project_id: "p1",
      type: "create_session",
    });
  });
});

describe("every request", () => {
  it("says who is asking", async ({ service }) => {
    const client = service.client({
      defaultHeaders: { "X-Team": "t", Accept: "application/json" },
    });
    await client.createSamplingClient({ baseModel: "m" });
    await client
      .createRestClient()
      .listSessions()
      .catch(() => {});
    const [first] = service.server.requestsTo("createSession");
    expect(first!.headers).toMatchObject({
      accept: "application/json",
      "content-type": "application/json",
      "user-agent": expect.stringMatching(/^tinker-ts\/\d+\.\d+\.\d+$/),
      "x-stainless-package-version": "0.25.0",
      "x-stainless-os": expect.any(String),
      "x-stainless-arch": expect.any(String),
      "x-stainless-runtime": "node",
      "x-stainless-runtime-version": process.version,
      "x-stainless-async": expect.any(String),
      "x-stainless-retry-count": "0",
      "x-stainless-read-timeout": "60",
      "x-api-key": "tml-test",
      "x-team": "t",
    });
    const get = service.server.requestsTo("listSessions")[0]!;
    expect(get.headers).not.toHaveProperty("content-type");
    expect(get.headers).not.toHaveProperty("x-idempotency-key");
  });

  it("carries the default query", async ({ service }) => {
    const client = service.client({ defaultQuery: { team_name: "x" } });
    await client
      .createRestClient()
      .listSessions({ limit: 3 })
      .catch(() => {});
    expect(service.server.seen.at(-1)!.path).toBe(
      "/api/v1/sessions?team_name=x&limit=3&offset=0&access_scope=owned",
    );
  });

  it("can be answered by a handler in place of the network", async ({ service }) => {
    const asked: string[] = [];
    const dispatcher = new Agent();
    const client = service.client({
      fetch: async (asking) => {
        asked.push(`${asking.method} ${new URL(asking.url).pathname}`);
        const { statusCode, headers, body } = await request(asking.url, {
          method: "POST",
          headers: Object.fromEntries(asking.headers),
          body: Buffer.from(await asking.arrayBuffer()),
          dispatcher,
        });
        return new Response(await body.arrayBuffer(), {
          status: statusCode,
          headers: headers as Record<string, string>,
        });
      },
    });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    await training.forwardBackward([datum], "cross_entropy");
    expect(asked).toContain("POST /api/v1/forward_backward");
    await dispatcher.close();
    const failing = service.client({
      maxRetries: 1,
      fetch: () => {
        throw new Error("no route");
      },
    });
    await expect(failing.getServerCapabilities()).rejects.toThrow(/no route/);
  });
});

describe("opening a session", () => {
  it("asks for flags, settings and a session, in that order and once", async ({ service }) => {
    const client = service.client({ userMetadata: { team: "t" } });
    await Promise.all([
      client.createLoraTrainingClient({ baseModel: "m" }),
      client.createLoraTrainingClient({ baseModel: "m" }),
      client.createSamplingClient({ baseModel: "m" }),
    ]);
    expect(endpoints(service).slice(0, 3)).toEqual([
      "clientConfig",
      "clientDynamicConfig",
      "createSession",
    ]);
    expect(service.server.requestsTo("createSession")).toHaveLength(1);
    expect(service.server.requestsTo("createSession")[0]!.json).toMatchObject({
      user_metadata: { team: "t" },
    });
    expect(
      service.server.requestsTo("createModel").map(({ json: body }) => body?.["model_seq_id"]),
    ).toEqual([0, 1]);
    expect(service.server.requestsTo("createModel")[0]!.json).toEqual({
      session_id: "session-0",
      model_seq_id: 0,
      base_model: "m",
      lora_config: { rank: 32, train_unembed: true, train_mlp: true, train_attn: true },
      type: "create_model",
    });
  });

  it("is left out by REST calls and capabilities", async ({ service }) => {
    const client = service.client();
    await client.getServerCapabilities().catch(() => {});
    await client
      .createRestClient()
      .listSessions()
      .catch(() => {});
    expect(service.server.requestsTo("createSession")).toEqual([]);
    expect(service.server.requestsTo("clientConfig")).toHaveLength(1);
  });

  it("logs what the server has to say, at its level", async ({ service }) => {
    service.server.script(
      "createSession",
      json({ session_id: "s", info_message: "i", warning_message: "w", error_message: "e" }),
    );
    await service.client().createSamplingClient({ baseModel: "m" });
    expect(service.log).toEqual(["info i", "warn w", "error e"]);
  });

  it("that failed is tried again by the next call", async ({ service }) => {
    const client = service.client({ maxRetries: 0 });
    service.server.script("createSession", json({ detail: "no" }, 403));
    await expect(client.createSamplingClient({ baseModel: "m" })).rejects.toMatchObject({
      status: 403,
    });
    await client.createSamplingClient({ baseModel: "m" });
  });

  it("does without dynamic settings where the server has none, and only there", async ({
    service,
  }) => {
    service.server.script("clientDynamicConfig", bare(404));
    await service.client().createSamplingClient({ baseModel: "m" });
    service.server.script("clientDynamicConfig", json({ detail: "no" }, 401));
    await expect(service.client().createSamplingClient({ baseModel: "m" })).rejects.toMatchObject({
      status: 401,
    });
  });

  it("goes on for the others when one caller gives up", async ({ service }) => {
    let answer = (): void => {};
    service.server.script("clientConfig", async (response) => {
      await new Promise<void>((resolve) => (answer = resolve));
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
    const client = service.client();
    const controller = new AbortController();
    const { signal } = controller;
    const impatient = client.createSamplingClient({ baseModel: "m", signal });
    const patient = client.createSamplingClient({ baseModel: "m" });
    await service.server.until(() => service.server.seen.length === 1);
    controller.abort(new Error("no time"));
    await expect(impatient).rejects.toThrow("no time");
    answer();
    await patient;
  });

  it("ends when all callers have given up, and says what kept failing", async ({ service }) => {
    service.clock.isManual = true;
    service.server.handle("clientConfig", () => json({ detail: "starting" }, 503));
    const client = service.client();
    const failures = Promise.all(
      [
        client.getServerCapabilities({ timeoutMs: 900 }),
        client.createRestClient().listTrainingRuns({ timeoutMs: 900 }),
      ].map((call) => call.catch((error: unknown) => String(error))),
    );
    await service.server.until(() => service.server.seen.length === 1);
    await settle(10);
    await service.clock.advance(900);
    for (const failure of await failures) {
      expect(failure).toMatch(
        /was not finished after 900 ms. The last failure, of clientConfig: .*starting/,
      );
    }
    expect(service.clock.pending).toBe(0);
    service.server.handle("clientConfig", () => json({}));
    service.server.handle("getServerCapabilities", () => json({ supported_models: [] }));
    await client.getServerCapabilities();
  });
});

describe("closing", () => {
  it.for(["clientConfig", "createSession"] as const)(
    "does not wait for a server that does not answer %s",
    async (endpoint, { service }) => {
      service.server.handle(endpoint, () => hang);
      const client = service.client();
      const making = expect(client.createSamplingClient({ baseModel: "m" })).rejects.toBeInstanceOf(
        CancelledError,
      );
      await service.server.until(() => service.server.requestsTo(endpoint).length === 1);
      await client.close();
      await making;
    },
  );

  it("happens at the end of a block that uses the client", async ({ service }) => {
    const client = service.client();
    await client.createSamplingClient({ baseModel: "m" });
    await client[Symbol.asyncDispose]();
    expect(service.clock.pending).toBe(0);
  });
});

describe("a session that the server has ended", () => {
  const sessionsMade = (service: FakeService) => service.server.requestsTo("createSession").length;
  const over = json({ error: "no sign of life for 5 min" }, 410);

  it("shows in its heartbeat; the next client gets a new one", async ({ service }) => {
    const client = service.client();
    await client.createSamplingClient({ baseModel: "m" });
    service.server.script("sessionHeartbeat", over);
    await service.clock.advance(10_000);
    await service.server.until(() => service.server.requestsTo("sessionHeartbeat").length === 1);
    await settle(10);
    expect(service.log).toEqual([expect.stringMatching(/^warn session session-0 is over/)]);
    const sampling = await client.createSamplingClient({ baseModel: "m" });
    expect(sampling.samplingSessionId).toBe("session-1:sample:0");
    expect(sessionsMade(service)).toBe(2);
  });

  it("shows when it refuses a client, which is then made in a new one", async ({ service }) => {
    const client = service.client();
    await client.createLoraTrainingClient({ baseModel: "m" });
    service.server.script("createModel", over);
    service.server.script("sessionHeartbeat", over);
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    expect(training.modelId).toBe("session-1:train:0");
  });

  it("is told from a checkpoint that does not exist", async ({ service }) => {
    const client = service.client();
    service.server.handle("createSamplingSession", () => json({ error: "no such weights" }, 404));
    const modelPath = "tinker://r/sampler_weights/x";
    await expect(client.createSamplingClient({ modelPath })).rejects.toMatchObject({ status: 404 });
    // A server that does not know heartbeats answers 404 to all of them.
    service.server.handle("sessionHeartbeat", () => bare(404));
    const other = service.client();
    await expect(other.createSamplingClient({ modelPath })).rejects.toMatchObject({ status: 404 });
    expect(sessionsMade(service)).toBe(2);
  });
});

describe("in the background", () => {
  it("a heartbeat goes out every ten seconds, and people hear of two minutes without", async ({
    service,
  }) => {
    await service.client().createSamplingClient({ baseModel: "m" });
    const beats = () => service.server.requestsTo("sessionHeartbeat").length;
    const pass = async (): Promise<void> => {
      const before = beats();
      await service.clock.advance(10_000);
      await service.server.until(() => beats() > before);
      await settle(10);
    };
    await service.clock.advance(9_999);
    expect(beats()).toBe(0);
    await service.clock.advance(1);
    await service.server.until(() => beats() === 1);
    await settle(10);
    expect(service.server.requestsTo("sessionHeartbeat")[0]!.json).toEqual({
      session_id: "session-0",
      type: "session_heartbeat",
    });
    service.server.handle("sessionHeartbeat", () => drop("before"));
    for (let beat = 0; beat < 12; beat++) await pass();
    expect(service.log).toEqual([]);
    await pass();
    expect(service.log).toEqual([
      expect.stringMatching(/no heartbeat of session session-0 .* 130 s/),
    ]);
    service.server.handle("sessionHeartbeat", () => json({}));
    await pass();
    service.server.handle("sessionHeartbeat", () => bare(500));
    await pass();
    expect(service.log).toHaveLength(1);
  });

  it("settings are fetched again as often as they say, and kept when that fails", async ({
    service,
  }) => {
    service.server.script("clientDynamicConfig", json({ refresh_interval_sec: 20 }));
    service.server.handle("clientDynamicConfig", () => bare(500));
    await service.client().createSamplingClient({ baseModel: "m" });
    const fetches = () => service.server.requestsTo("clientDynamicConfig").length;
    for (let round = 1; round <= 3; round++) {
      await service.clock.advance(20_000);
      await service.server.until(() => fetches() === 1 + round);
      await settle(10);
    }
  });
});

describe("tokens", () => {
  const now = Date.UTC(2026, 0, 2, 3, 4, 5) / 1000;
  const enable = (service: FakeService, lifetimeSec: number) => {
    service.flags["pjwt_auth_enabled"] = true;
    let count = 0;
    service.server.handle("authToken", () => {
      const exp = now + service.clock.now() / 1000 + lifetimeSec;
      return json({ jwt: jwt({ sub: "user:1", email: "", exp, n: count++ }) });
    });
  };
  const keysOf = (service: FakeService, endpoint: "createSession" | "authToken" | "optimStep") =>
    service.server.requestsTo(endpoint).map(({ headers }) => headers["x-api-key"]!);

  it("are exchanged for the key and used from then on", async ({ service }) => {
    enable(service, 3600);
    const client = service.client();
    await client.createSamplingClient({ baseModel: "m" });
    expect(keysOf(service, "authToken")).toEqual(["tml-test"]);
    expect(keysOf(service, "createSession")[0]).toMatch(/^eyJ/);
    expect(await client.createRestClient().whoami()).toMatchObject({
      userUrn: "user:1",
      email: null,
    });
  });

  it("are renewed five minutes before they expire", async ({ service }) => {
    enable(service, 3600);
    await service.client().createSamplingClient({ baseModel: "m" });
    await service.clock.advance(3_299_000);
    expect(service.server.requestsTo("authToken")).toHaveLength(1);
    await service.clock.advance(1_000);
    await service.server.until(() => service.server.requestsTo("authToken").length === 2);
  });

  it("that are about to expire are renewed by whoever needs one, once for all", async ({
    service,
  }) => {
    enable(service, 50);
    const client = service.client();
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    // Every token is about to expire here, so each request needs one; these three ask at once.
    let answer = (): void => {};
    const held = new Promise<void>((resolve) => (answer = resolve));
    const issue = jwt({ sub: "user:1", exp: now + 7200, n: "renewed" });
    service.server.handle("authToken", async () => {
      await held;
      return json({ jwt: issue });
    });
    const before = service.server.requestsTo("authToken").length;
    const futures = [
      training.optimStep(),
      client.getServerCapabilities(),
      client.createRestClient().listSessions(),
    ];
    await service.server.until(() => service.server.requestsTo("authToken").length > before);
    await settle(10);
    answer();
    await Promise.allSettled(futures);
    expect(service.server.requestsTo("authToken")).toHaveLength(before + 1);
    expect(keysOf(service, "optimStep")).toEqual([issue]);
  });

  it("that cannot be renewed serve on, and it is tried again after a minute", async ({
    service,
  }) => {
    enable(service, 400);
    await service.client({ maxRetries: 0 }).createSamplingClient({ baseModel: "m" });
    service.server.handle("authToken", () => bare(401));
    await service.clock.advance(100_000);
    await service.server.until(() => service.server.requestsTo("authToken").length === 2);
    await settle(10);
    expect(service.log).toEqual([expect.stringMatching(/could not renew the access token/)]);
    await service.clock.advance(60_000);
    await service.server.until(() => service.server.requestsTo("authToken").length === 3);
  });

  it("that cannot be had at all fail the call", async ({ service }) => {
    service.flags["pjwt_auth_enabled"] = true;
    service.server.handle("authToken", () => json({ detail: "who are you" }, 401));
    await expect(service.client().createSamplingClient({ baseModel: "m" })).rejects.toMatchObject({
      status: 401,
    });
  });

  it("come from the credential command where the server wants that", async ({ service }) => {
    enable(service, 3600);
    service.flags["credential_default_source"] = "credential_cmd";
    const env = { TINKER_CREDENTIAL_CMD: "echo tml-from-command" };
    await service.client({ env }).createSamplingClient({ baseModel: "m" });
    expect(keysOf(service, "authToken")).toEqual(["tml-from-command"]);
    await expect(service.client().createSamplingClient({ baseModel: "m" })).rejects.toBeInstanceOf(
      CredentialError,
    );
  });
});

it("a credential command that fails is tried again, then told", async ({ service }) => {
  const client = service.client({
    apiKey: undefined,
    maxRetries: 1,
    env: { TINKER_CREDENTIAL_CMD: "true" },
  });
  await expect(client.getServerCapabilities()).rejects.toMatchObject({
    name: "APIConnectionError",
    message: expect.stringContaining("printed nothing"),
    cause: expect.any(CredentialError),
  });
});

describe("a training client", () => {
  it("of bad settings is refused before anything is sent", async ({ service }) => {
    const client = service.client();
    const bad = [
      [{ baseModel: "" }, /baseModel/],
      [{ baseModel: "m", rank: 0 }, /rank/],
      [{ baseModel: "m", trainMlp: false, trainAttn: false, trainUnembed: false }, /at least one/],
      [{ baseModel: "m", timeoutMs: -5 }, /timeoutMs/],
    ] as const;
    for (const [options, message] of bad) {
      await expect(client.createLoraTrainingClient(options)).rejects.toThrow(message);
    }
    expect(service.server.seen).toEqual([]);
  });

  it("that is given up while it is made is unloaded, and a new session is opened", async ({
    service,
  }) => {
    const client = service.client();
    service.server.script("retrieveFuture", hang);
    const controller = new AbortController();
    const { signal } = controller;
    const making = client.createLoraTrainingClient({ baseModel: "m", signal });
    await service.server.until(() => service.server.requestsTo("retrieveFuture").length === 1);
    controller.abort(new Error("enough"));
    await expect(making).rejects.toThrow("enough");
    await service.server.until(() => service.server.requestsTo("unloadModel").length === 1);
    expect(service.server.requestsTo("unloadModel").map(({ json: body }) => body)).toEqual([
      { model_id: "session-0:train:0", type: "unload_model" },
    ]);
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    expect(training.modelId).toBe("session-1:train:0");
  });

  it("that is given up does not end a session that others use", async ({ service }) => {
    const client = service.client();
    await client.createLoraTrainingClient({ baseModel: "m" });
    service.server.script("retrieveFuture", hang);
    const controller = new AbortController();
    const making = client.createLoraTrainingClient({ baseModel: "m", signal: controller.signal });
    await service.server.until(() => service.server.requestsTo("createModel").length === 2);
    await settle(10);
    controller.abort();
    await expect(making).rejects.toThrow();
    await settle();
    expect(service.server.requestsTo("unloadModel")).toEqual([]);
    expect(service.log).toEqual([expect.stringMatching(/model session-0:train:1 was given up/)]);
  });

  it("that the server cannot make fails with its words", async ({ service }) => {
    service.server.script("retrieveFuture", json({ error: "no such model", category: "user" }));
    await expect(
      service.client().createLoraTrainingClient({ baseModel: "x" }),
    ).rejects.toMatchObject({ name: "RequestFailedError", message: "no such model" });
    expect(service.server.requestsTo("unloadModel")).toEqual([]);
  });

  it("from a checkpoint asks what it is, makes the same and loads it", async ({ service }) => {
    service.server.handle("weightsInfo", () =>
      json({ base_model: "b", is_lora: true, lora_rank: 8, train_unembed: false, train_mlp: null }),
    );
    const client = service.client();
    const path = "tinker://run/weights/a";
    await client.createTrainingClientFromState(path);
    await client.createTrainingClientFromStateWithOptimizer(path, {
      baseModel: "longer",
      userMetadata: { from: "a" },
    });
    expect(service.server.requestsTo("createModel").map(({ json: body }) => body)).toMatchObject([
      {
        base_model: "b",
        lora_config: { rank: 8, train_unembed: false, train_mlp: true, train_attn: true },
      },
      { base_model: "longer", user_metadata: { from: "a" } },
    ]);
    expect(service.server.requestsTo("loadWeights").map(({ json: body }) => body)).toEqual([
      { model_id: "session-0:train:0", seq_id: 1, path, optimizer: false, type: "load_weights" },
      { model_id: "session-0:train:1", seq_id: 1, path, optimizer: true, type: "load_weights" },
    ]);
  });

  it("from a checkpoint in one request where the server offers that", async ({ service }) => {
    service.flags["create_model_via_load_weights"] = true;
    const client = service.client();
    const training = await client.createTrainingClientFromState("tinker://run/weights/a", {
      weightsAccessToken: "tml-owner",
    });
    expect(training.modelId).toBe("session-0:train:0");
    expect(service.server.requestsTo("loadWeights")[0]!.json).toEqual({
      session_id: "session-0",
      model_seq_id: 0,
      path: "tinker://run/weights/a",
      optimizer: false,
      weights_access_token: "tml-owner",
      type: "load_weights",
    });
    expect(service.server.requestsTo("createModel")).toEqual([]);
    await training.optimStep();
    expect(service.server.requestsTo("optimStep")[0]!.json).toMatchObject({ seq_id: 1 });
  });

  it("from somebody else's checkpoint asks with the owner's credential", async ({ service }) => {
    service.server.handle("weightsInfo", () =>
      json({ base_model: "b", is_lora: true, lora_rank: 8 }),
    );
    const weightsAccessToken = "tml-owner";
    await service
      .client()
      .createTrainingClientFromState("tinker://run/weights/a", { weightsAccessToken });
    expect(service.server.requestsTo("weightsInfo")[0]!.headers["x-api-key"]).toBe("tml-owner");
    expect(service.server.requestsTo("createSession")).toHaveLength(1);
    expect(service.server.requestsTo("loadWeights")[0]!.json).toMatchObject({
      weights_access_token: "tml-owner",
    });
  });

  it("from something that is no LoRA checkpoint is refused", async ({ service }) => {
    service.server.handle("weightsInfo", () => json({ base_model: "b", is_lora: false }));
    const client = service.client();
    await expect(client.createTrainingClientFromState("tinker://r/weights/a")).rejects.toThrow(
      /not a LoRA checkpoint/,
    );
    await expect(client.createTrainingClientFromState("r/weights/a")).rejects.toThrow(/tinker:/);
  });

  it("saves and loads under checked names", async ({ service }) => {
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    expect(() => training.saveState("")).toThrow(/^name: /);
    expect(() => training.saveState("a/b")).toThrow(/^name: /);
    expect(() => training.saveState("a", { ttlSeconds: 0 })).toThrow(/^ttlSeconds: /);
    expect(() => training.loadState("weights/a")).toThrow(/^path: /);
    await training.saveState("a", { ttlSeconds: 5, overwrite: true });
    await training.loadState("tinker://r/weights/a");
    await training.loadStateWithOptimizer("tinker://r/weights/a");
    const { path } = await training.saveWeightsForSampler("s");
    expect(path).toBe("tinker://run/sampler_weights/s");
    expect(service.server.requestsTo("saveWeights")[0]!.json).toEqual({
      model_id: "session-0:train:0",
      path: "a",
      seq_id: 1,
      ttl_seconds: 5,
      overwrite: true,
      type: "save_weights",
    });
    expect(service.server.requestsTo("saveWeightsForSampler")[0]!.json).toEqual({
      model_id: "session-0:train:0",
      path: "s",
      seq_id: 4,
      type: "save_weights_for_sampler",
    });
    service.server.script(
      "saveWeightsForSampler",
      service.accept("SaveWeightsForSamplerResponseInternal", {}),
    );
    await expect(training.saveWeightsForSampler("t")).rejects.toThrow(/returned no path/);
  });

  it("tells what the server knows, with the tokenizer's id cut", async ({ service }) => {
    service.server.handle("getInfo", () =>
      json({
        model_id: "session-0:train:0",
        model_data: { model_name: "org/model", tokenizer_id: "org/tokenizer:rev" },
      }),
    );
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    expect((await training.getInfo()).modelData).toMatchObject({ tokenizerId: "org/tokenizer" });
  });

  it.for([
    [[], "cross_entropy", undefined, /^data: /],
    [[datum], "made_up", undefined, /^lossFn: /],
    [[datum], "ppo", { x: Number.NaN }, /^lossFnConfig.x: /],
    [
      [
        {
          modelInput: { chunks: [{ location: "u", format: "png" }] },
          lossFnInputs: {},
        },
      ],
      "cross_entropy",
      undefined,
      /^data\[0\].modelInput: an image asset pointer/,
    ],
    [
      [{ modelInput: [1], lossFnInputs: { other: [1] } }],
      "cross_entropy",
      undefined,
      /^data\[0\]: .*no dtype/,
    ],
  ] as const)(
    "refuses %j before anything is sent",
    async ([data, lossFn, lossFnConfig, message], { service }) => {
      const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
      const call = () => training.forwardBackward(data as never, lossFn as never, { lossFnConfig });
      expect(call).toThrow(ArgumentError);
      expect(call).toThrow(message);
      // It took no place in the order.
      await training.optimStep();
      expect(service.server.requestsTo("optimStep")[0]!.json).toMatchObject({ seq_id: 1 });
    },
  );
});
