import { ArgumentError, CredentialError, ServiceClient } from "tinker-ts";
import { Agent, request } from "undici";
import { describe, expect } from "vitest";
import { datum, serviceTest as it } from "../support/service-test.js";
import { settle } from "../support/test-clock.js";

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

  it("needs no key for a custom server, and sends none", async ({ service }) => {
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
  it("identifies the client", async ({ service }) => {
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
