import { CredentialError } from "tinker-ts";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, vi } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import type { RouteName } from "../../src/wire/routes.js";
import { bare, json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";
import { settle } from "../support/test-clock.js";

const jwt = (claims: Record<string, unknown>) =>
  `eyJhbGciOiJub25lIn0.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;

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
  const keysOf = (service: FakeService, endpoint: RouteName) =>
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
    service.server.handle("getServerCapabilities", () => json({ supported_models: [] }));
    const client = service.client();
    await client.createSamplingClient({ baseModel: "m" });
    await client.getServerCapabilities();
    await service.clock.advance(3_299_000);
    expect(service.server.requestsTo("authToken")).toHaveLength(1);
    await service.clock.advance(1_000);
    await service.server.until(() => service.server.requestsTo("authToken").length === 2);
    await settle(10);
    await client.getServerCapabilities();
    const [first, second] = keysOf(service, "getServerCapabilities");
    expect(second).toMatch(/^eyJ/);
    expect(second).not.toBe(first);
  });

  it("that are about to expire are renewed on demand, once for all", async ({ service }) => {
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

  it("that cannot be renewed stay in use, with a retry after a minute", async ({ service }) => {
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

  it("that cannot be issued fail the call", async ({ service }) => {
    service.flags["pjwt_auth_enabled"] = true;
    service.server.handle("authToken", () => json({ detail: "who are you" }, 401));
    await expect(service.client().createSamplingClient({ baseModel: "m" })).rejects.toMatchObject({
      status: 401,
    });
  });

  it("come from the credential command if the server requires it", async ({ service }) => {
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

it("a credential command that fails is retried, then reported", async ({ service }) => {
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

it("a credential command ends with the call that waits for it", async ({ service }) => {
  const folder = await mkdtemp(path.join(tmpdir(), "tinker-ts-credential-"));
  const pidFile = path.join(folder, "pid");
  const client = service.client({
    apiKey: undefined,
    env: {
      TINKER_CREDENTIAL_CMD: `echo $$ > ${pidFile}.new; mv ${pidFile}.new ${pidFile}; exec sleep 600`,
    },
  });
  const giveUp = new AbortController();
  const call = client.getServerCapabilities({ signal: giveUp.signal });
  const pid = await vi.waitFor(() => Number(readFileSync(pidFile, "utf8")), 10_000);
  giveUp.abort(new Error("enough"));
  await expect(call).rejects.toThrow("enough");
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"), 10_000);
  await rm(folder, { recursive: true });
});
