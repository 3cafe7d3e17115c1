import { ArgumentError, InternalServerError, type RestClient } from "tinker-ts";
import type { RouteName } from "tinker-ts/wire";
import { describe, expect } from "vitest";
import { bare, json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";

const path = "tinker://run-1/weights/0001";
const checkpoint = "/api/v1/training_runs/run-1/checkpoints/weights/0001";
const cursor = { offset: 0, limit: 20, total_count: 1 };
const run = {
  training_run_id: "run-1",
  base_model: "m",
  model_owner: "me",
  is_lora: true,
  last_request_time: "2026-01-02T03:04:05.678901Z",
};

const calls: readonly [
  string,
  RouteName,
  (rest: RestClient) => Promise<unknown>,
  string,
  unknown,
  unknown,
][] = [
  [
    "getTrainingRun",
    "getTrainingRun",
    (rest) => rest.getTrainingRun("run-1"),
    "GET /api/v1/training_runs/run-1?access_scope=owned",
    undefined,
    run,
  ],
  [
    "getTrainingRunByTinkerPath",
    "getTrainingRun",
    (rest) => rest.getTrainingRunByTinkerPath(path, { accessScope: "accessible" }),
    "GET /api/v1/training_runs/run-1?access_scope=accessible",
    undefined,
    run,
  ],
  [
    "getWeightsInfoByTinkerPath",
    "weightsInfo",
    (rest) => rest.getWeightsInfoByTinkerPath(path),
    "POST /api/v1/weights_info",
    { tinker_path: path },
    { base_model: "m", is_lora: true },
  ],
  [
    "listTrainingRuns",
    "listTrainingRuns",
    (rest) => rest.listTrainingRuns(),
    "GET /api/v1/training_runs?limit=20&offset=0&access_scope=owned",
    undefined,
    { training_runs: [run], cursor },
  ],
  [
    "listTrainingRuns of a project",
    "listTrainingRuns",
    (rest) => rest.listTrainingRuns({ limit: 5, offset: 10, projectId: "p" }),
    "GET /api/v1/training_runs?limit=5&offset=10&access_scope=owned&project_id=p",
    undefined,
    { training_runs: [], cursor },
  ],
  [
    "listCheckpoints",
    "listCheckpoints",
    (rest) => rest.listCheckpoints("run-1"),
    "GET /api/v1/training_runs/run-1/checkpoints",
    undefined,
    { checkpoints: [] },
  ],
  [
    "listUserCheckpoints",
    "listUserCheckpoints",
    (rest) => rest.listUserCheckpoints(),
    "GET /api/v1/checkpoints?limit=100&offset=0",
    undefined,
    { checkpoints: [] },
  ],
  [
    "deleteCheckpoint",
    "deleteCheckpoint",
    (rest) => rest.deleteCheckpoint("run-1", "weights/0001"),
    `DELETE ${checkpoint}`,
    undefined,
    undefined,
  ],
  [
    "deleteCheckpointFromTinkerPath",
    "deleteCheckpoint",
    (rest) => rest.deleteCheckpointFromTinkerPath(path),
    `DELETE ${checkpoint}`,
    undefined,
    undefined,
  ],
  [
    "publishCheckpointFromTinkerPath",
    "publishCheckpoint",
    (rest) => rest.publishCheckpointFromTinkerPath(path),
    `POST ${checkpoint}/publish`,
    undefined,
    undefined,
  ],
  [
    "unpublishCheckpointFromTinkerPath",
    "unpublishCheckpoint",
    (rest) => rest.unpublishCheckpointFromTinkerPath(path),
    `DELETE ${checkpoint}/publish`,
    undefined,
    undefined,
  ],
  [
    "setCheckpointTtlFromTinkerPath",
    "setCheckpointTtl",
    (rest) => rest.setCheckpointTtlFromTinkerPath(path, 60),
    `PUT ${checkpoint}/ttl`,
    { ttl_seconds: 60 },
    undefined,
  ],
  [
    "setCheckpointTtlFromTinkerPath to never",
    "setCheckpointTtl",
    (rest) => rest.setCheckpointTtlFromTinkerPath(path, null),
    `PUT ${checkpoint}/ttl`,
    { ttl_seconds: null },
    undefined,
  ],
  [
    "getSession",
    "getSession",
    (rest) => rest.getSession("s"),
    "GET /api/v1/sessions/s?access_scope=owned",
    undefined,
    { training_run_ids: [], sampler_ids: [] },
  ],
  [
    "listSessions",
    "listSessions",
    (rest) => rest.listSessions(),
    "GET /api/v1/sessions?limit=20&offset=0&access_scope=owned",
    undefined,
    { sessions: ["s"] },
  ],
  [
    "assignSessionProject",
    "assignSessionProject",
    (rest) => rest.assignSessionProject("s", "p"),
    "PUT /api/v1/sessions/s/project",
    { project_id: "p" },
    undefined,
  ],
  [
    "getSampler",
    "getSampler",
    (rest) => rest.getSampler("s:sample:0"),
    "GET /api/v1/samplers/s:sample:0",
    undefined,
    { sampler_id: "s:sample:0", base_model: "m" },
  ],
  [
    "getAuditLog",
    "getAuditLog",
    (rest) => rest.getAuditLog({ day: "2026-01-02" }),
    "GET /api/v1/audit?event_type=all&day=2026-01-02",
    undefined,
    { entries: [] },
  ],
  [
    "getBillingUsage",
    "getBillingUsage",
    (rest) =>
      rest.getBillingUsage({ startingOn: "2026-01-01", endingBefore: "2026-01-02T03:00:00+01:00" }),
    "GET /api/v1/billing/usage/events?starting_on=2026-01-01T00%3A00%3A00Z&ending_before=2026-01-02T03%3A00%3A00%2B01%3A00",
    undefined,
    { data: [] },
  ],
];

describe("a REST client", () => {
  it.for(calls)(
    "%s sends the request of the API",
    async ([, endpoint, call, request, body, answer], { service }) => {
      service.server.handle(endpoint, () => (answer === undefined ? bare(204) : json(answer)));
      const result = await call(service.client().createRestClient());
      const seen = service.server.requestsTo(endpoint)[0]!;
      expect(`${seen.method} ${seen.path}`).toBe(request);
      expect(seen.json).toEqual(body);
      if (answer === undefined) expect(result).toBeUndefined();
      else expect(result).toEqual(expect.any(Object));
    },
  );

  it("keeps microseconds and unknown fields", async ({ service }) => {
    service.server.handle("getTrainingRun", () => json({ ...run, brand_new: 1 }));
    const read = await service.client().createRestClient().getTrainingRun("run-1");
    expect(read.lastRequestTime.text).toBe("2026-01-02T03:04:05.678901Z");
    expect(read.unknownFields).toEqual({ brand_new: 1 });
  });

  const refused: readonly [string, (rest: RestClient) => Promise<unknown>, RegExp][] = [
    ["no run", (rest) => rest.listCheckpoints(""), /^trainingRunId: /],
    [
      "a path without a name",
      (rest) => rest.deleteCheckpointFromTinkerPath("tinker://r/weights"),
      /^path: /,
    ],
    ["a lifetime of zero", (rest) => rest.setCheckpointTtlFromTinkerPath(path, 0), /^ttlSeconds: /],
    [
      "no lifetime",
      (rest) => rest.setCheckpointTtlFromTinkerPath(path, undefined as never),
      /^ttlSeconds: /,
    ],
    ["a negative page", (rest) => rest.listSessions({ offset: -1 }), /^offset: /],
    [
      "an unknown scope",
      (rest) => rest.getSession("s", { accessScope: "all" as never }),
      /^accessScope: /,
    ],
    ["a day in words", (rest) => rest.getAuditLog({ day: "today" }), /^day: /],
    [
      "half an hour",
      (rest) =>
        rest.getBillingUsage({ startingOn: "2026-01-01T00:30:00Z", endingBefore: "2026-01-02" }),
      /^startingOn: .*full hour/,
    ],
    [
      "an empty window",
      (rest) => rest.getBillingUsage({ startingOn: "2026-01-02", endingBefore: "2026-01-02" }),
      /^endingBefore: .*after/,
    ],
    [
      "three weeks",
      (rest) => rest.getBillingUsage({ startingOn: "2026-01-01", endingBefore: "2026-01-22" }),
      /^endingBefore: .*14 days/,
    ],
    [
      "no date",
      (rest) => rest.getBillingUsage({ startingOn: "soon", endingBefore: new Date(0) }),
      /^startingOn: /,
    ],
    ["no project", (rest) => rest.assignSessionProject("s", ""), /^projectId: /],
    ["no folder", (rest) => rest.downloadCheckpoint(path, { directory: "" }), /^directory: /],
  ];
  it.for(refused)("refuses %s before any request", async ([, call, message], { service }) => {
    const error = await call(service.client().createRestClient()).catch(
      (caught: unknown) => caught,
    );
    expect(error).toBeInstanceOf(ArgumentError);
    expect((error as Error).message).toMatch(message);
    const asked = service.server.seen.map(({ endpoint }) => endpoint);
    expect(asked.filter((endpoint) => !endpoint?.startsWith("client"))).toEqual([]);
  });
});

describe("the address of an archive", () => {
  const ask = (rest: RestClient) => rest.getCheckpointArchiveUrlFromTinkerPath(path);

  it("comes in the body", async ({ service }) => {
    service.server.handle("getCheckpointArchiveUrl", () =>
      json({ url: "http://x/a.tar", expires: "2026-01-02T03:04:05Z" }),
    );
    const { url, expires } = await ask(service.client().createRestClient());
    expect([url, expires.toISOString()]).toEqual(["http://x/a.tar", "2026-01-02T03:04:05.000Z"]);
  });

  it("comes as a redirect that is not followed", async ({ service }) => {
    const expires = "Fri, 02 Jan 2026 04:00:00 GMT";
    service.server.script(
      "getCheckpointArchiveUrl",
      bare(302, { location: "http://x/b.tar", expires }),
      bare(302, { location: "http://x/c.tar", expires: "nonsense" }),
    );
    const rest = service.client().createRestClient();
    expect(await ask(rest)).toMatchObject({ url: "http://x/b.tar", expires: new Date(expires) });
    const quarterHour = service.clock.wallTime() + 15 * 60_000;
    expect((await ask(rest)).expires.getTime()).toBe(quarterHour);
    service.server.script("getCheckpointArchiveUrl", bare(302));
    await expect(ask(rest)).rejects.toMatchObject({ status: 302 });
  });

  it("is polled while the server packs", async ({ service }) => {
    service.server.script("getCheckpointArchiveUrl", bare(503), bare(503));
    service.server.handle("getCheckpointArchiveUrl", () =>
      json({ url: "http://x/a.tar", expires: "2026-01-02T03:04:05Z" }),
    );
    await ask(service.client({ maxRetries: 0 }).createRestClient());
    expect(service.clock.sleeps).toEqual([30_000, 30_000]);
    expect(service.log).toEqual([expect.stringMatching(/^info .*packing/)]);
  });

  it("is polled every half minute for ten minutes", async ({ service }) => {
    service.server.handle("getCheckpointArchiveUrl", () => bare(503));
    const error = await ask(service.client().createRestClient()).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(InternalServerError);
    expect(service.clock.sleeps).toEqual(Array.from({ length: 20 }, () => 30_000));
  });

  it("has a bounded wait", async ({ service }) => {
    service.server.handle("getCheckpointArchiveUrl", () => bare(503));
    const error = await ask(service.client({ maxRetries: 0 }).createRestClient()).catch(
      (caught: unknown) => caught,
    );
    expect(error).toBeInstanceOf(InternalServerError);
    expect(service.clock.sleeps.filter((ms) => ms === 30_000).length % 5).toBe(0);
  });
});

describe("a trace", () => {
  it("is polled", async ({ service }) => {
    const answers = [{ status: "pending" }, { status: "pending" }, { status: "ready", url: "u" }];
    service.server.script("exportSessionTrace", ...answers.map((answer) => json(answer)));
    expect(await service.client().createRestClient().exportSessionTrace("s")).toBe("u");
    expect(service.clock.sleeps).toEqual([5000, 5000]);
    expect(service.log).toHaveLength(1);
  });

  it("that failed gives the reason", async ({ service }) => {
    service.server.script("exportSessionTrace", json({ status: "failed", error: "too large" }));
    await expect(service.client().createRestClient().exportSessionTrace("s")).rejects.toThrow(
      /too large/,
    );
  });
});

describe("whoami", () => {
  const token = (claims: object) =>
    `eyJh.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;

  it("reads the claims of a token", async ({ service }) => {
    const apiKey = token({ iss: "passport-1", sub: "urn:me", email: "me@example.com" });
    const rest = service.client({ apiKey }).createRestClient();
    expect(await rest.whoami()).toEqual({ userUrn: "urn:me", email: "me@example.com" });
  });

  it.for(["tml-plain", "eyJbroken", token({ iss: "other", sub: "x" })])(
    "knows nothing from %s",
    async (apiKey, { service }) => {
      await expect(service.client({ apiKey }).createRestClient().whoami()).rejects.toThrow(
        /does not name its owner/,
      );
    },
  );
});
