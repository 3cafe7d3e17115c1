import { describe, expect, it } from "vitest";
import { ArgumentError } from "../errors/argument-error.js";
import { CredentialError } from "../errors/tinker-error.js";
import { parseBaseUrl } from "./base-url.js";
import { findCredential } from "./credentials.js";
import { resolveCredential } from "./resolve-credential.js";
import { endpointPath } from "./api.js";
import { headerList } from "./exchange.js";
import type { HttpRequest } from "./message.js";
import { withReadyResponses as withRedirects } from "./responses.js";
import { retryDelayMs, shouldRetry } from "./retry.js";

const response = (status: number, headers: Record<string, string> = {}) => ({
  status,
  headers,
  body: new Uint8Array(),
  downloadMs: 0,
});

const request: HttpRequest = {
  method: "GET",
  origin: "http://a.test",
  path: "/x",
  commonHeaders: { accept: "application/json", "cf-access-client-id": "c" },
  headers: { "x-api-key": "tml-secret", accept: "text/plain" },
  body: null,
  idempotencyKey: null,
  retryCount: 2,
  pool: "train",
  timeoutMs: 1,
  maxAnswerBytes: 1000,
  streams: false,
  isBackground: false,
  followsRedirects: true,
  signal: undefined,
};

describe("the retry policy", () => {
  it.each([
    [408, true],
    [409, true],
    [429, true],
    [500, true],
    [599, true],
    [400, false],
    [401, false],
    [402, false],
    [403, false],
    [404, false],
    [410, false],
    [422, false],
    [302, false],
  ])("%i is retried: %s", (status, isRetried) => {
    expect(shouldRetry(response(status))).toBe(isRetried);
    expect(shouldRetry(response(status, { "x-should-retry": "true" }))).toBe(true);
    expect(shouldRetry(response(status, { "x-should-retry": "false" }))).toBe(false);
  });

  const now = Date.UTC(2026, 0, 1);
  it.each([
    ["milliseconds", { "retry-after-ms": "1500", "retry-after": "9" }, 1500],
    ["seconds", { "retry-after": "2.5" }, 2500],
    ["a date", { "retry-after": new Date(now + 7000).toUTCString() }, 7000],
    ["exactly a minute", { "retry-after": "60" }, 60_000],
    ["more than a minute, which is not believed", { "retry-after": "61" }, 500],
    ["zero, which is not believed", { "retry-after": "0" }, 500],
    ["a date in the past", { "retry-after": new Date(now - 1000).toUTCString() }, 500],
    ["nonsense", { "retry-after": "soon" }, 500],
    ["nothing", {}, 500],
  ])("waits for the time in %s", (_, headers, delayMs) => {
    expect(retryDelayMs(0, headers, now, () => 0)).toBe(delayMs);
  });

  it("waits longer up to ten seconds, minus a random quarter", () => {
    const delays = [0, 1, 2, 3, 4, 5, 6].map((count) => retryDelayMs(count, {}, 0, () => 0));
    expect(delays).toEqual([500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
    expect(retryDelayMs(0, undefined, 0, () => 1)).toBe(375);
  });
});

describe("addresses", () => {
  it.each([
    ["http://h", "http://h", ""],
    ["http://h/", "http://h", ""],
    ["https://h:8/pre/", "https://h:8", "/pre"],
    ["https://h/a/b", "https://h", "/a/b"],
  ])("%s keeps its path", (text, origin, prefix) => {
    expect(parseBaseUrl(text)).toEqual({ origin, prefix });
  });

  it.each(["", "h", "ftp://h", "http://h?x=1", "http://u@h", "http://h#x"])(
    "%j is refused",
    (text) => {
      expect(() => parseBaseUrl(text)).toThrow(ArgumentError);
    },
  );

  it("inserts ids verbatim and leaves empty query values out", () => {
    const path = endpointPath(
      "/runs/{run}/checkpoints/{id}",
      { run: "s:train:0", id: "weights/0001" },
      { limit: 20, deep: true, project: null, scope: "", other: undefined },
    );
    expect(path).toBe("/runs/s:train:0/checkpoints/weights/0001?limit=20&deep=true");
  });

  it.each(["", "a?b", "a#b", "a b", "../secrets", "weights/../x", "a\r\nb", "%2e"])(
    "the id %j is refused",
    (run) => {
      expect(() => endpointPath("/runs/{run}", { run })).toThrow(/^run: /);
    },
  );
});

describe("credentials", () => {
  it.each([
    ["tml-abc", true],
    ["eyJhbGciOi.x.y", true],
    ["sk-abc", false],
  ])("%s is usable: %s", (key, isUsable) => {
    const find = () => findCredential(key, {}, true);
    if (isUsable) expect(resolveCredential(find(), { enforceCommand: false })()).toBe(key);
    else expect(find).toThrow(/tml-/);
  });

  it("fails with instructions when there is none, and needs none for a custom server", () => {
    expect(() => findCredential(undefined, {}, true)).toThrow(
      /TINKER_API_KEY.*TINKER_BASE_URL.*local:/,
    );
    expect(() => findCredential(undefined, {}, true)).toThrow(CredentialError);
    const source = findCredential(undefined, {}, false);
    expect(resolveCredential(source, { enforceCommand: false })()).toBeUndefined();
  });

  it("prefers the argument, and uses a command only without a usable key", async () => {
    const env = { TINKER_API_KEY: "tml-env", TINKER_CREDENTIAL_CMD: "echo ' tml-command '" };
    const from = (key: string | undefined, enforceCommand: boolean, variables = env) =>
      resolveCredential(findCredential(key, variables, true), { enforceCommand })();
    expect(await from("tml-argument", false)).toBe("tml-argument");
    expect(await from(undefined, false)).toBe("tml-env");
    expect(await from(undefined, true)).toBe("tml-command");
    expect(await from("eyJ.a.b", true)).toBe("eyJ.a.b");
    expect(await from("bad", false)).toBe("tml-command");
  });

  it("refuses a command that prints nothing and one that is missing", async () => {
    const silent = findCredential(undefined, { TINKER_CREDENTIAL_CMD: "true" }, true);
    await expect(resolveCredential(silent, { enforceCommand: false })()).rejects.toThrow(
      /printed nothing/,
    );
    const none = findCredential("tml-x", {}, true);
    expect(() => resolveCredential(none, { enforceCommand: true })).toThrow(
      /TINKER_CREDENTIAL_CMD/,
    );
  });
});

describe("headers", () => {
  it("those of a request win over the common ones", () => {
    const list = headerList(request);
    const pairs = Array.from({ length: list.length / 2 }, (_, i) => [list[2 * i], list[2 * i + 1]]);
    expect(pairs).toEqual([
      ["accept", "text/plain"],
      ["cf-access-client-id", "c"],
      ["x-stainless-retry-count", "2"],
      ["x-api-key", "tml-secret"],
    ]);
  });

  it("those of one request are not those of the next", () => {
    headerList({ ...request, idempotencyKey: "k" });
    expect(headerList({ ...request, headers: {}, retryCount: 0 })).toEqual([
      ...Object.entries(request.commonHeaders).flat(),
      "x-stainless-retry-count",
      "0",
    ]);
  });
});

describe("redirects", () => {
  const follow = async (first: ReturnType<typeof response>, sent = request) => {
    const seen: HttpRequest[] = [];
    const send = withRedirects((asked) => {
      seen.push(asked);
      return Promise.resolve(seen.length === 1 ? first : response(200));
    });
    const { status } = await send(sent);
    return { status, seen };
  };

  it("are followed on the same origin with everything", async () => {
    const { status, seen } = await follow(response(302, { location: "/y?z=1" }));
    expect(status).toBe(200);
    expect(seen[1]).toMatchObject({ path: "/y?z=1", headers: request.headers });
  });

  it("never carry credentials to another origin", async () => {
    const { seen } = await follow(response(307, { location: "https://b.test/y" }));
    expect(seen[1]).toMatchObject({
      origin: "https://b.test",
      headers: { accept: "text/plain" },
      commonHeaders: { accept: "application/json" },
    });
    expect(JSON.stringify(seen[1])).not.toMatch(/tml-secret|cf-access/);
  });

  it("of a POST are followed only where the body goes along", async () => {
    const post = { ...request, method: "POST" as const, body: "{}" };
    expect((await follow(response(301, { location: "/y" }), post)).status).toBe(301);
    const { status, seen } = await follow(response(308, { location: "/y" }), post);
    expect(status).toBe(200);
    expect(seen[1]).toMatchObject({ method: "POST", body: "{}", path: "/y" });
  });

  it("are answers where they are not wanted, without a target, and after five", async () => {
    const unwanted = { ...request, followsRedirects: false };
    expect((await follow(response(302, { location: "/y" }), unwanted)).status).toBe(302);
    expect((await follow(response(302))).status).toBe(302);
    let count = 0;
    const send = withRedirects(() => {
      count++;
      return Promise.resolve(response(302, { location: "/again" }));
    });
    expect((await send(request)).status).toBe(302);
    expect(count).toBe(6);
  });
});
