import type { Socket } from "node:net";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { TinkerError } from "tinker-ts";
import { describe, expect } from "vitest";
import { FakeService } from "../support/fake-service.js";
import { bare, bytes, drop, hang, json, stall, type Reply } from "../support/scripted-server.js";
import { datum, serviceTest as it } from "../support/service-test.js";
import { settle } from "../support/test-clock.js";

/*
 * What servers do to clients, on real sockets and with the computer's own clock. The law of all rows:
 * the promise settles within the caller's time, with the result or with an error of this package, and
 * nothing is left behind (the fixture counts sockets and timers).
 */

const isFull = process.env["TINKER_TS_TEST_FULL"] !== undefined;

/** The time that the caller gives; every promise must have settled a little later. */
const callMs = 1_200;
const graceMs = 3_000;

type Ending = "works" | RegExp;
type Row = readonly [behaviour: string, reply: Reply, ending: Ending];

const models = { supported_models: [{ model_name: "m" }] };
const text = JSON.stringify(models);
const raw =
  (...lines: readonly string[]): Reply =>
  (response) =>
    void response.socket?.end(lines.join("\r\n"));
const packed = (body: Uint8Array, encoding: string): Reply =>
  bytes(body, 200, { "content-encoding": encoding });
const moved = (location: string, status = 302): Reply => bare(status, { location });

/** Writes for as long as the other end listens. */
const endless =
  (part: string | Uint8Array, head: Readonly<Record<string, string>> = {}): Reply =>
  (response) => {
    response.writeHead(200, head);
    const write = (): void => {
      while (!response.destroyed && response.write(part));
      if (!response.destroyed) response.once("drain", write);
    };
    write();
  };

/** A byte now and then. */
const drip =
  (part = " "): Reply =>
  (response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write(part), 50);
    response.once("close", () => clearInterval(timer));
  };

/** Gzip of zeros, a thousand times smaller than what it unpacks to: many members, each quick to make. */
const member = gzipSync(Buffer.alloc(2 ** 23));
const bomb = (sizeBytes: number): Reply =>
  packed(Buffer.concat(Array<Buffer>(sizeBytes / 2 ** 23).fill(member)), "gzip");

const notHttp = /Connection error|timed out|not finished/;
const timeout = /timed out|not finished/;
const unreadable = /does not match the API schema/;

const generic: readonly Row[] = [
  ["says nothing", hang, timeout],
  ["says nothing after the head", stall, timeout],
  ["hangs up at once", drop("before"), notHttp],
  ["hangs up in the body", drop("inBody"), notHttp],
  ["drips", drip(), timeout],
  ["drips white space that is valid JSON so far", drip("\n"), timeout],
  ["sends a body without end", endless("x".repeat(65_536)), /larger than|not finished/],
  [
    "announces more than is allowed",
    bytes(new Uint8Array(), 200, { "content-length": "99999999999" }),
    /larger than|Connection error/,
  ],
  ["sends headers without end", endlessHeaders, notHttp],
  [
    "sends a header that is too long",
    raw("HTTP/1.1 200 OK", `x: ${"y".repeat(100_000)}`, "", ""),
    notHttp,
  ],
  ["speaks another protocol", raw("220 mail ready", ""), notHttp],
  ["answers with nothing but a line break", raw("", ""), notHttp],
  [
    "answers with binary noise",
    (response) => void response.socket?.end(Buffer.from([0, 255, 3, 128])),
    notHttp,
  ],
  ["has a status that is no number", raw("HTTP/1.1 OK fine", "", ""), notHttp],
  ["has a status of 999", raw("HTTP/1.1 999 odd", "content-length: 2", "", "{}"), /999/],
  ["has a status of 199", raw("HTTP/1.1 199 odd", "content-length: 2", "", "{}"), notHttp],
  [
    "has two lengths that differ",
    raw("HTTP/1.1 200 OK", "content-length: 2", "content-length: 9", "", "{}"),
    notHttp,
  ],
  ["has a negative length", raw("HTTP/1.1 200 OK", "content-length: -2", "", "{}"), notHttp],
  [
    "has a broken chunk",
    raw("HTTP/1.1 200 OK", "transfer-encoding: chunked", "", "zz", "{}"),
    notHttp,
  ],
  [
    "has a length and chunks",
    raw(
      "HTTP/1.1 200 OK",
      "content-length: 2",
      "transfer-encoding: chunked",
      "",
      "2",
      "{}",
      "0",
      "",
      "",
    ),
    /.*/,
  ],
  ["sends less than promised", raw("HTTP/1.1 200 OK", "content-length: 50", "", text), notHttp],
  [
    "upgrades the connection",
    raw("HTTP/1.1 101 Switching Protocols", "upgrade: x", "connection: upgrade", "", ""),
    notHttp,
  ],
  [
    "answers early hints first",
    raw(
      "HTTP/1.1 103 Early Hints",
      "",
      `HTTP/1.1 200 OK`,
      `content-length: ${text.length}`,
      "",
      text,
    ),
    "works",
  ],
  ["sends no content", bare(204), unreadable],
  ["sends an empty body", bytes(new Uint8Array()), unreadable],
  [
    "sends HTML",
    bytes(Buffer.from("<html>Sign in</html>"), 200, { "content-type": "text/html" }),
    /Sign in/,
  ],
  ["sends half of a JSON text", bytes(Buffer.from(text.slice(0, 20))), unreadable],
  ["sends text that is not UTF-8", bytes(Buffer.from([0x22, 0xff, 0x22])), unreadable],
  ["sends a list", json([]), unreadable],
  ["sends null", json(null), unreadable],
  ["sends a number", json(7), unreadable],
  ["nests JSON very deeply", bytes(Buffer.from("[".repeat(200_000))), unreadable],
  [
    "has a proto key in its JSON",
    bytes(Buffer.from('{"supported_models":[],"__proto__":{"x":1}}')),
    "works",
  ],
  ["leaves the needed field out", json({ models: [] }), /supported_models.*It begins/],
  ["has the needed field of another type", json({ supported_models: "m" }), unreadable],
  [
    "answers in a media type of its own",
    bytes(Buffer.from(text), 200, { "content-type": "x/y; z" }),
    "works",
  ],
  ["has an empty content encoding", packed(Buffer.from(text), ""), "works"],
  ["has the encoding Identity", packed(Buffer.from(text), "Identity"), "works"],
  ["has the encoding none", packed(Buffer.from(text), "none"), "works"],
  ["has the encodings gzip, identity", packed(gzipSync(text), "gzip, identity"), "works"],
  ["packs twice", packed(gzipSync(gzipSync(text)), "gzip, gzip"), "works"],
  ["packs with deflate", packed(deflateSync(text), "deflate"), "works"],
  ["packs with bare deflate", packed(deflateRawSync(text), "deflate"), "works"],
  ["packs with brotli", packed(brotliCompressSync(text), "br"), "works"],
  [
    "says gzip and sends plain text",
    packed(Buffer.from(text), "gzip"),
    /gzip data is broken|not finished/,
  ],
  [
    "cuts its gzip off",
    packed(gzipSync(text).subarray(0, 20), "gzip"),
    /gzip data is broken|not finished/,
  ],
  [
    "uses an unknown compression",
    packed(Buffer.from(text), "rot13"),
    /rot13 data is broken|not finished/,
  ],
  ["sends a gzip bomb", bomb(2 ** 27), /larger than|not finished/],
  ["redirects to itself", moved("/api/v1/get_server_capabilities"), /302/],
  ["redirects to nowhere", bare(302), /302/],
  ["redirects to ftp", moved("ftp://127.0.0.1/x"), /ftp: address, which is not followed/],
  ["redirects to data", moved("data:application/json,{}"), /data: address, which is not followed/],
  ["redirects to a file", moved("file:///etc/passwd", 307), /file: address, which is not followed/],
  ["redirects to a broken address", moved("http://[::1"), /302/],
  ["redirects to a port without a listener", moved("http://127.0.0.1:1/x"), notHttp],
  ["refuses with an empty 400, over and over", bare(400), /400/],
  ["asks to come back in a year", bare(503, { "retry-after": "31536000" }), /503|not finished/],
  ["asks to come back in the past", bare(503, { "retry-after": "-5" }), /503|not finished/],
  ["asks to come back at no time", bare(429, { "retry-after": "later" }), /429|not finished/],
  [
    "is a teapot that wants another try",
    bare(418, { "x-should-retry": "true" }),
    /418|not finished/,
  ],
];

function endlessHeaders({ socket }: { readonly socket: Socket | null }): void {
  if (!socket) return;
  socket.write("HTTP/1.1 200 OK\r\n");
  let count = 0;
  const write = (): void => {
    for (let hasRoom = true; hasRoom && !socket.destroyed;) {
      hasRoom = socket.write(`x-${count++}: ${"y".repeat(1000)}\r\n`);
    }
    if (!socket.destroyed) socket.once("drain", write);
  };
  write();
}

const client = (service: FakeService) =>
  service.client({ clock: undefined, timeoutMs: 300, maxRetries: 1, random: undefined });

/** Waits for a promise for no longer than the law allows. */
async function settled(promise: Promise<unknown>): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("it did not settle in time")), callMs + graceMs);
  });
  try {
    await Promise.race([promise, late]);
    return "works";
  } catch (error) {
    return error;
  } finally {
    clearTimeout(timer);
  }
}

async function expectEnding(promise: Promise<unknown>, ending: Ending): Promise<void> {
  const outcome = await settled(promise);
  if (ending === "works") {
    expect(outcome).toBe("works");
    return;
  }
  expect(outcome).toBeInstanceOf(TinkerError);
  const messages = [outcome, ...((outcome as { attempts?: unknown[] }).attempts ?? [])];
  expect(messages.map((value) => (value as Error).message).join("\n")).toMatch(ending);
}

/** Rows that take their time run with the full suite only. */
const quick =
  /works|match the API|It begins|followed|Sign in|302|fetched|unreadable|dropped|twice|reason|request_id|mismatch|<html>|a stream|{"a"/;
const rows = (list: readonly Row[]) =>
  list.filter(([, , ending]) => isFull || quick.test(String(ending)));

describe("a call to a server that", () => {
  it.for(rows(generic))("%s", async ([, reply, ending], { service }) => {
    service.server.handle("getServerCapabilities", () => reply);
    // What works must do so on a busy machine too.
    const call =
      ending === "works"
        ? service.client({ clock: undefined }).getServerCapabilities()
        : client(service).getServerCapabilities({ timeoutMs: callMs });
    await expectEnding(call, ending);
  });
});

const polls: readonly Row[] = [
  ["never answers", hang, timeout],
  ["drips", drip(), timeout],
  ["sends a body without end", endless("x".repeat(2 ** 20)), /larger than|not finished/],
  ["sends a gzip bomb", bomb(2 ** 30), /larger than|not finished/],
  ["says try_again for ever, at once", json({ type: "try_again" }), /not finished/],
  ["says 500 for ever", json({ detail: "x" }, 500), /not finished.*500/],
  ["says 429 for ever", bare(429), /not finished.*429/],
  ["says 402 for ever", json({ error: "unpaid" }, 402), /not finished.*unpaid/],
  ["says 408 for ever", bare(408), /not finished/],
  ["says 404", bare(404), /could not be fetched/],
  ["says 410", bare(410), /dropped the result/],
  ["says 400 for ever", json({ detail: "x" }, 400), /could not be fetched/],
  [
    "announces its size for ever",
    json({ status: "complete_metadata", response_payload_size: 5 }),
    /twice/,
  ],
  [
    "announces a size below zero",
    json({ status: "complete_metadata", response_payload_size: -5 }),
    /.*/,
  ],
  [
    "sends protobuf for a JSON result",
    bytes(Buffer.from([8, 1]), 200, { "content-type": "application/x-protobuf" }),
    /unreadable/,
  ],
  ["fails without words", json({ error: null, category: null }), /gave no reason/],
  ["fails with a list", json({ error: [1, 2] }), /\[1,2\]/],
  ["sends HTML", bytes(Buffer.from("<html>")), /unreadable/],
  ["hangs up for ever", drop("before"), /not finished/],
];

describe("a poll of a server that", () => {
  it.for(rows(polls))("%s", async ([, reply, ending], { service }) => {
    const training = await client(service).createLoraTrainingClient({ baseModel: "m" });
    service.server.handle("retrieveFuture", () => reply);
    await expectEnding(training.optimStep({}, { timeoutMs: callMs }), ending);
  });
});

const submissions: readonly Row[] = [
  ["never answers", hang, timeout],
  ["accepts without an id", json({}), /request_id/],
  ["accepts with an id that is a number", json({ request_id: 5 }), /request_id/],
  ["hangs up for ever", drop("before"), /not finished|Connection error/],
  ["says 409 for ever", bare(409), /not finished|409/],
  ["refuses", json({ detail: "length mismatch" }, 422), /length mismatch/],
  ["refuses in HTML", bytes(Buffer.from("<html>no</html>"), 403), /<html>no/],
];

describe("a pass to a server that", () => {
  it.for(rows(submissions))("%s", async ([, reply, ending], { service }) => {
    const training = await client(service).createLoraTrainingClient({ baseModel: "m" });
    service.server.handle("forwardBackward", () => reply);
    const options = { timeoutMs: callMs };
    await expectEnding(training.forwardBackward([datum], "cross_entropy", options), ending);
  });
});

const line = (value: unknown): string => `${JSON.stringify(value)}\n`;
const streams: readonly Row[] = [
  ["never begins", hang, timeout],
  ["begins and stops", (response) => response.writeHead(200).flushHeaders(), timeout],
  ["sends a line without end", endless("x".repeat(65_536)), /no end|not finished/],
  ["sends tokens without end", endless(line({ index: 0, token: 1 })), /not finished/],
  ["ends early", bytes(Buffer.from(line({ index: 0, token: 1 }))), /ended before/],
  ["hangs up", drop("inBody"), /Connection error|not finished/],
  ["sends noise", bytes(Buffer.from([0, 1, 2, 10])), /not a stream of tokens/],
  ["fails half way", bytes(Buffer.from(line({ error: { a: 1 } }))), /{"a":1}/],
  [
    "packs although it was asked not to",
    packed(gzipSync(line({ index: 0, token: 1 })), "gzip"),
    /not a stream|ended before/,
  ],
  ["says 429 for ever", bare(429), /not finished.*429/],
];

describe("a stream from a server that", () => {
  it.for(rows(streams))("%s", async ([, reply, ending], { service }) => {
    const sampling = await client(service).createSamplingClient({ baseModel: "m" });
    service.server.handle("streamSample", () => reply);
    const stream = sampling.stream({ prompt: [1], tokenizer: null, timeoutMs: callMs });
    const read = async (): Promise<void> => {
      for await (const _ of stream);
    };
    await expectEnding(read(), ending);
  });
});

// With a clock that stands still: only the size can end these.
it.for([
  ["a gzip bomb", bomb(2 ** 27)],
  ["a body without end", endless("x".repeat(65_536))],
] as const)("%s is refused for its size, without another try", async ([, reply], { service }) => {
  service.server.handle("getServerCapabilities", () => reply);
  await expect(service.client().getServerCapabilities()).rejects.toMatchObject({
    name: "APIResponseValidationError",
    code: "response_too_large",
  });
  expect(service.server.requestsTo("getServerCapabilities")).toHaveLength(1);
});

describe("credentials", () => {
  it("and the caller's own headers stay with the server they are for", async ({ service }) => {
    const other = await FakeService.start();
    other.server.handle("getServerCapabilities", () => json({ error: "who are you" }, 401));
    const target = `${other.server.url}/api/v1/get_server_capabilities`;
    service.server.handle("getServerCapabilities", () => moved(target));
    const defaultHeaders = { authorization: "Bearer s1", cookie: "s2", "x-tenant": "s3" };
    const redirected = service.client({ defaultHeaders });
    const call = redirected.getServerCapabilities();
    await expect(call).rejects.toMatchObject({
      status: 401,
      message: expect.stringMatching(/the key was not sent there.*set baseUrl/) as string,
    });
    const [asked] = service.server.requestsTo("getServerCapabilities");
    expect(asked!.headers).toMatchObject(defaultHeaders);
    const [seen] = other.server.requestsTo("getServerCapabilities");
    expect(JSON.stringify(seen!.headers)).not.toMatch(/s1|s2|s3|tml-/);
    await redirected.close();
    await other.close();
  });

  it("stay with redirects on the same server", async ({ service }) => {
    service.server.handle("getServerCapabilities", () => moved("/api/v1/healthz"));
    service.server.handle("healthz", () => json(models));
    await service.client({ defaultHeaders: { "x-tenant": "s3" } }).getServerCapabilities();
    const [seen] = service.server.requestsTo("healthz");
    expect(seen!.headers).toMatchObject({ "x-api-key": "tml-test", "x-tenant": "s3" });
  });
});

it("telemetry that is answered with something else is not sent again", async ({ service }) => {
  service.server.handle("telemetry", () => json({ ok: true }));
  const failing = service.client({ telemetry: true });
  service.server.handle("createModel", () => json({ detail: "no" }, 422));
  await expect(failing.createLoraTrainingClient({ baseModel: "m" })).rejects.toThrow(/no/);
  await service.server.until(() => service.server.requestsTo("telemetry").length > 0);
  await settle(50);
  await service.clock.advance(120_000);
  const ids = service.server
    .requestsTo("telemetry")
    .flatMap(({ json: body }) => body?.["events"] as { event_id: string }[])
    .map(({ event_id }) => event_id);
  expect(ids.length).toBeGreaterThan(0);
  expect(new Set(ids).size).toBe(ids.length);
});
