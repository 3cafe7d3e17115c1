import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { ServiceClient } from "tinker-ts";
import { describe, expect } from "vitest";
import { hang, json } from "../support/scripted-server.js";
import { datum, serviceTest as it } from "../support/service-test.js";
import { settle } from "../support/test-clock.js";

describe("long polls", () => {
  it("do not starve other requests", async ({ service }) => {
    const client = service.client();
    const sampling = await client.createSamplingClient({ baseModel: "m" });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    service.clock.isManual = true;
    const isSample = (type: string | undefined) => type === "Sample";
    service.server.handle("retrieveFuture", (request) =>
      isSample(request.headers["x-tinker-request-type"]) ? hang : service.result(request),
    );
    const held = Array.from({ length: 300 }, () => sampling.sample({ prompt: [1] }));
    const polls = () => service.server.requestsTo("retrieveFuture").length;
    // Polls are parked after a moment each, sixty-four at a time.
    while (polls() < 300) {
      await settle(5);
      await service.clock.advance(100);
    }
    await training.forwardBackward([datum], "cross_entropy");
    await training.optimStep();
    for (const future of held) future.cancel();
    await Promise.allSettled(held);
  });

  it("share a limit of connections fairly", async ({ service }) => {
    const client = service.client({ sockets: { maxConnections: 3 } });
    const sampling = await client.createSamplingClient({ baseModel: "m" });
    service.clock.isManual = true;
    let answering = false;
    const waiting: (() => void)[] = [];
    service.server.handle("retrieveFuture", async (request) => {
      if (!answering) await new Promise<void>((resolve) => waiting.push(resolve));
      return service.result(request);
    });
    const futures = Array.from({ length: 20 }, () => sampling.sample({ prompt: [1] }));
    while (waiting.length < 3) {
      await settle(5);
      await service.clock.advance(100);
    }
    await settle(20);
    expect(service.server.requestsTo("retrieveFuture")).toHaveLength(3);
    answering = true;
    for (const answer of waiting) answer();
    await Promise.all(futures);
  });
});

describe("connections", () => {
  it("are reused", async ({ service }) => {
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    for (let step = 0; step < 20; step++) await training.optimStep();
    expect(await service.server.connectionCount()).toBeLessThanOrEqual(4);
  });

  it("closed by the server are reopened without an error", async ({ service }) => {
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    for (let step = 0; step < 3; step++) {
      service.server.script("optimStep", (response, request) => {
        response.setHeader("connection", "close");
        return service.accept("OptimStepResponse", {})(response, request);
      });
      await training.optimStep();
      await settle(5);
    }
    expect(service.clock.sleeps).toEqual([]);
  });

  it("that break while a large body is on its way are replaced, and it is sent again", async ({
    service,
  }) => {
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    const tokens = new Int32Array(400_000).fill(7);
    const large = { modelInput: tokens, lossFnInputs: { target_tokens: tokens } };
    service.server.breakUpload("forwardBackward");
    service.server.breakUpload("forwardBackward");
    const pass = training.forwardBackward([large], "cross_entropy");
    await pass;
    expect(service.clock.sleeps).toEqual([500, 1000]);
    expect(service.server.requestsTo("forwardBackward")).toHaveLength(1);
  });

  it("that cannot be opened give an error", async ({ service }) => {
    const { url } = service.server;
    const port = Number(new URL(url).port);
    const client = service.client({
      baseUrl: `http://127.0.0.1:${port === 1 ? 2 : 1}`,
      maxRetries: 0,
    });
    await expect(client.getServerCapabilities()).rejects.toMatchObject({
      name: "APIConnectionError",
      wasSent: false,
      message: expect.stringContaining("ECONNREFUSED"),
    });
  });
});

describe("HTTP/2", () => {
  const certificate = readFileSync(
    new URL("../fixtures/loopback-certificate.pem", import.meta.url),
    "utf8",
  );
  const key = readFileSync(new URL("../fixtures/loopback-key.pem", import.meta.url), "utf8");

  /** Answers everything that sampling asks for. */
  const answer = (request: Http2ServerRequest, response: Http2ServerResponse): void => {
    request.resume();
    const answers = {
      create_session: { session_id: "s" },
      create_sampling_session: { sampling_session_id: "x" },
      asample: { request_id: "r" },
      retrieve_future: { sequences: [] },
    };
    const endpoint = request.url.split("/").at(-1) as keyof typeof answers;
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(answers[endpoint] ?? {}));
  };

  const start = async (version: "1.1" | "2.0") => {
    const options = { cert: certificate, key };
    const server = version === "2.0" ? createSecureServer(options) : createHttpsServer(options);
    const versions = new Set<string>();
    let sockets = 0;
    server.on("secureConnection", () => sockets++);
    server.on("request", (request: Http2ServerRequest, response: Http2ServerResponse) => {
      versions.add(request.httpVersion);
      answer(request, response);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `https://localhost:${(server.address() as AddressInfo).port}`;
    return { server, url, versions, socketCount: () => sockets };
  };

  const sampleMany = async (url: string, maxConnections?: number) => {
    const client = new ServiceClient({
      baseUrl: url,
      apiKey: "tml-x",
      telemetry: false,
      sockets: { http2: true, ca: certificate, maxConnections },
    });
    const sampling = await client.createSamplingClient({ baseModel: "m" });
    await Promise.all(Array.from({ length: 200 }, () => sampling.sample({ prompt: [1] })));
    await client.close();
  };

  it.for([undefined, 1])(
    "carries a burst over as few connections as have room for it (at most %s per kind)",
    async (maxConnections) => {
      const { server, url, versions, socketCount } = await start("2.0");
      await sampleMany(url, maxConnections);
      expect([...versions]).toEqual(["2.0"]);
      // Opening and session; then 200 samples and 200 polls, a hundred per connection.
      expect(socketCount()).toBeLessThanOrEqual(2 + 2 * (maxConnections ?? 2));
      server.close();
      await once(server, "close");
    },
  );

  it("is not required", async () => {
    const { server, url, versions } = await start("1.1");
    await sampleMany(url);
    expect([...versions]).toEqual(["1.1"]);
    server.close();
    await once(server, "close");
  });
});

it("a response may be large and arrive in many parts", async ({ service }) => {
  const models = Array.from({ length: 50_000 }, (_, index) => ({ model_name: `model-${index}` }));
  service.server.handle("getServerCapabilities", () => json({ supported_models: models }));
  const { supportedModels } = await service.client().getServerCapabilities();
  expect(supportedModels).toHaveLength(50_000);
});
