import {
  ArgumentError,
  CredentialError,
  ServiceClient,
  type ServiceClientOptions,
} from "tinker-ts";
import { describe, expect, it as test } from "vitest";
import { datum, serviceTest as it } from "../support/service-test.js";
import type { FakeService } from "../support/fake-service.js";

const argumentError = (call: () => unknown): ArgumentError => {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(ArgumentError);
    expect(error).toHaveProperty("isUserError", true);
    return error as ArgumentError;
  }
  return expect.fail("it was accepted");
};

describe("options of a service client", () => {
  test.each([
    ["baseURL", { baseURL: "http://x" }, "baseURL: unknown option; did you mean baseUrl?"],
    ["api_key", { api_key: "tml-x" }, "api_key: unknown option; did you mean apiKey?"],
    ["maxRetry", { maxRetry: 1 }, "maxRetry: unknown option; did you mean maxRetries?"],
    [
      "something else",
      { colour: 1 },
      /^colour: unknown option; there are timeoutMs, baseUrl, dataDir, inProcess, apiKey/,
    ],
  ])("with %s are refused", (_, options, message) => {
    const error = argumentError(() => new ServiceClient(options as ServiceClientOptions));
    expect(error.message).toMatch(message);
  });

  test("that are undefined count as not given", () => {
    const options = { baseUrl: "http://127.0.0.1:1", surprise: undefined } as ServiceClientOptions;
    expect(() => new ServiceClient(options)).not.toThrow();
  });

  test.each([
    ["a line break at its end", { apiKey: "tml-x\n" }, /The API key ends with a line break/],
    ["a character beyond Latin-1", { apiKey: "tml-€" }, /The API key holds the character "€"/],
  ])("with a key that has %s are refused at once", (_, options, message) => {
    const create = () => new ServiceClient({ baseUrl: "http://127.0.0.1:1", ...options });
    expect(create).toThrow(CredentialError);
    expect(create).toThrow(message);
  });

  test.each([
    ["a line break", { "x-team": "a\r\nb" }, /^defaultHeaders.x-team: holds the character "\\r"/],
    ["no text", { "x-team": 5 as unknown as string }, /^defaultHeaders.x-team: must be text/],
    ["no name", { "x team": "a" }, /^defaultHeaders.x team: is not the name of a header/],
  ])("with a header of %s are refused at once", (_, defaultHeaders, message) => {
    const options = { baseUrl: "http://127.0.0.1:1", apiKey: "tml-x", defaultHeaders };
    expect(argumentError(() => new ServiceClient(options)).message).toMatch(message);
  });

  it("with a credential command that prints invalid characters fail without a retry", async ({
    service,
  }) => {
    const env = { TINKER_CREDENTIAL_CMD: "printf 'tml-€'" };
    const client = service.client({ apiKey: undefined, env });
    await expect(client.getServerCapabilities()).rejects.toThrow(
      /The credential holds the character/,
    );
    expect(service.clock.sleeps).toEqual([]);
  });
});

const open = async (service: FakeService) => {
  const client = service.client();
  const sampling = await client.createSamplingClient({ baseModel: "m" });
  const training = await client.createLoraTrainingClient({ baseModel: "m" });
  return { client, sampling, training };
};

describe("arguments of calls", () => {
  it("that are text instead of tokens fail with a suggestion", async ({ service }) => {
    const { sampling, training } = await open(service);
    const prompt = "Once upon a time" as unknown as number[];
    const wanted = /^prompt: text must be encoded first: pass the token ids of tokenizer.encode/;
    expect(argumentError(() => sampling.sample({ prompt })).message).toMatch(wanted);
    expect(argumentError(() => sampling.stream({ prompt })).message).toMatch(wanted);
    expect(argumentError(() => sampling.computeLogprobs(prompt)).message).toMatch(wanted);
    const text = argumentError(() =>
      training.forwardBackward([{ ...datum, modelInput: prompt }], "cross_entropy"),
    );
    expect(text).toMatchObject({ field: "data[0].modelInput" });
    for (const odd of [null, undefined, 5, {}]) {
      expect(argumentError(() => sampling.sample({ prompt: odd as never })).field).toBe("prompt");
    }
  });

  it("in Python's spelling fail with the right name", async ({ service }) => {
    const { sampling, training } = await open(service);
    const messages = [
      () => sampling.sample({ prompt: [1], samplingParams: { max_tokens: 5 } as never }),
      () => sampling.sample({ prompt: [1], sampling_params: {} } as never),
      () => sampling.sample({ prompt: [1], num_samples: 2 } as never),
      () => training.optimStep({ learning_rate: 1 } as never),
      () => training.forwardBackward([datum], "ppo", { loss_fn_config: {} } as never),
      () => training.saveState("a", { ttl_seconds: 5 } as never),
    ].map((call) => argumentError(call).message);
    expect(messages).toEqual([
      "samplingParams.max_tokens: unknown option; did you mean maxTokens?",
      "sampling_params: unknown option; did you mean samplingParams?",
      "num_samples: unknown option; did you mean numSamples?",
      "adamParams.learning_rate: unknown option; did you mean learningRate?",
      "loss_fn_config: unknown option; did you mean lossFnConfig?",
      "ttl_seconds: unknown option; did you mean ttlSeconds?",
    ]);
  });

  it("of methods that create clients are checked too", async ({ service }) => {
    const client = service.client();
    await expect(
      client.createLoraTrainingClient({ baseModel: "m", loraRank: 4 } as never),
    ).rejects.toThrow(/^loraRank: unknown option/);
    await expect(
      client.createSamplingClient({ baseModel: "m", modelPath: "tinker://r/weights/a" }),
    ).rejects.toThrow(/^baseModel: pass modelPath or baseModel, not both/);
    await expect(client.createSamplingClient({ base_model: "m" } as never)).rejects.toThrow(
      /^base_model: unknown option; did you mean baseModel\?/,
    );
    await expect(
      client.createRestClient().listTrainingRuns({ limits: 5 } as never),
    ).rejects.toThrow(/^limits: unknown option; did you mean limit\?/);
    expect(service.server.seen).toEqual([]);
  });

  it("are named once, by the caller's names", async ({ service }) => {
    const { sampling, training } = await open(service);
    const messages = [
      () => training.forward([datum], "mse" as never),
      () => sampling.sample({ prompt: [1], samplingParams: { temperature: "hot" as never } }),
      () => training.forward([{ ...datum, lossFnInputs: { weights: ["x"] as never } }], "ppo"),
    ].map((call) => argumentError(call));
    expect(messages.map(({ field }) => field)).toEqual([
      "lossFn",
      "samplingParams.temperature",
      "data[0].lossFnInputs.weights",
    ]);
    for (const { message, field } of messages) {
      expect(message.startsWith(`${field}: `)).toBe(true);
      expect(message.split(field)).toHaveLength(2);
    }
  });
});
