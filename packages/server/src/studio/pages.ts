import { Readable } from "node:stream";
import {
  parseJson,
  studioRoutes,
  writeStudioSeries,
  type StudioExhibitKind,
  type StudioHello,
  type StudioRouteName,
} from "tinker-ts/wire";
import { credentialOf, type Authenticator } from "../auth/authenticator.js";
import type { Principal } from "../auth/principal.js";
import type { Core } from "../core.js";
import { ApiError, badRequest } from "../errors/api-error.js";
import { bytesResponse, emptyResponse, jsonResponse } from "../http/answers.js";
import type { ExtraPage } from "../http/app.js";
import type { OpenJson } from "../http/read-body.js";
import { StudioPage } from "./assets.js";
import { checkpointRows } from "./checkpoint-rows.js";
import { seriesCsv } from "./csv.js";
import { EventPages } from "./event-page.js";
import { Exhibits } from "./exhibits.js";
import {
  checkFetchSite,
  checkStudioHeader,
  dataHeaders,
  embedHeaders,
  LoginCodes,
  studioHeaders,
} from "./guard.js";
import type { LogFolders } from "./log-folders.js";
import { keepSamples } from "./keep-samples.js";
import { logsPage, type LogIntake } from "./log-intake.js";
import { machineState, laneRows, usageRows } from "./machine.js";
import { Steering } from "./steering.js";
import { Studio } from "./studio.js";

/** What the studio's pages need. */
export interface StudioPagesParts {
  readonly core: Core;
  readonly authenticator: Authenticator;
  readonly openJson: OpenJson;
  readonly version: string;
  readonly intake: LogIntake;
  /** Folders of runs that others have written. */
  readonly folders: LogFolders;
  /** Threads of the engine; undefined for all cores. */
  readonly threads: number | undefined;
  /** Where clients reach the server, when that is not where it listens. */
  readonly publicUrl: string | null;
  /** Pages that may show a chart of this server. */
  readonly corsOrigins: readonly string[];
}

/** One request to the studio, after its caller is known. */
interface StudioCall {
  readonly request: Request;
  readonly caller: Principal;
  readonly owner: string;
  readonly id: string;
  readonly name: string;
  readonly query: URLSearchParams;
  /** The body as JSON; an object. */
  readonly body: () => Promise<Record<string, unknown>>;
}

type StudioHandler = (call: StudioCall) => unknown;

const defaultBuckets = 1000;
const maxBuckets = 5000;
const maxSeries = 2000;

/** The page of the studio, its files and its data. */
export function studioPages(parts: StudioPagesParts): ExtraPage[] {
  const { core, authenticator, openJson, version, intake, folders, threads } = parts;
  const readObject = async (request: Request, owner: string) => {
    const { texts, release } = await openJson(request, owner, "whole");
    try {
      return toObject(texts);
    } finally {
      release();
    }
  };
  const { context } = core;
  const studio = new Studio(core, folders);
  const steering = new Steering(core, studio);
  const exhibits = new Exhibits(core, studio, folders);
  const startedAt = context.clock.now();
  const codes = new LoginCodes(context.clock);
  const page = new StudioPage();
  const events = new EventPages(context.recorder.hub, {
    pingMs: context.limits.streamPingMs,
    lanes: (owner) => laneRows(core, studio.rows, owner),
    poll: () =>
      folders
        .poll()
        .catch((error: unknown) =>
          context.logger.warn("cannot read log folders", { error: String(error) }),
        ),
  });

  const token = (caller: Principal) => ({
    token: authenticator.issueToken(caller, "studio"),
    expiresAt: context.clock.now() + 3_600_000,
  });
  const login = async (request: Request) => {
    const { code, key } = await readObject(request, "studio-login");
    const caller =
      typeof code === "string"
        ? codes.redeem(code)
        : typeof key === "string"
          ? authenticator.identify(key)
          : undefined;
    if (caller) return token(caller);
    const problem =
      typeof code === "string"
        ? "this code was used or is older than a minute; run tinker-ts studio again, or log in with a key"
        : "the API key is not known here";
    throw new ApiError(401, problem);
  };
  const hello = (request: Request): StudioHello => {
    const caller = authenticator.identify(credentialOf(request.headers));
    return {
      version,
      needsLogin: caller === undefined,
      owner: caller?.owner ?? null,
      address: caller ? (parts.publicUrl ?? new URL(request.url).origin) : null,
      capture: caller ? context.recorder.capture : null,
      models: caller ? core.bases.names : null,
      hasFolders: caller ? !folders.isEmpty : null,
      cursor: caller ? context.recorder.hub.cursor() : null,
    };
  };

  const handlers: Readonly<Partial<Record<StudioRouteName, StudioHandler>>> = {
    code: ({ caller }) => codes.issue(caller),
    renew: ({ caller }) => token(caller),
    runs: async ({ owner, query }) => {
      await folders.poll();
      const ids = query.getAll("ids");
      return studio.runs(owner, {
        ids: ids.length > 0 ? new Set(ids) : null,
        text: query.get("q") ?? "",
        sort: query.get("sort") ?? "-updated",
        cursor: query.get("cursor"),
        limit: numberIn(query, "limit", 100, 1, 1000),
        withArchived: query.get("archived") === "1",
      });
    },
    run: async ({ owner, id }) => {
      await folders.poll();
      return studio.detail(owner, id);
    },
    async series({ owner, query }) {
      const runs = query.getAll("runs").map((run) => studio.idOf(owner, run));
      const keys = query.getAll("keys");
      await folders.poll();
      if (runs.length * keys.length > maxSeries) {
        throw badRequest("keys", `at most ${maxSeries} series at a time`);
      }
      const series = await studio.series(owner, runs, keys, {
        x: query.get("x") ?? "step",
        from: numberIn(query, "from", Number.NEGATIVE_INFINITY),
        to: numberIn(query, "to", Number.POSITIVE_INFINITY),
        buckets: numberIn(query, "buckets", defaultBuckets, 1, maxBuckets),
      });
      return bytesResponse(writeStudioSeries(series), "application/octet-stream");
    },
    async csv({ owner, id, query }) {
      const log = studio.owned(owner, id);
      await studio.whenMoved(log);
      const series = studio.rows.series(log);
      const keys = query.getAll("keys");
      const rows = seriesCsv(context.store.series, series, keys.length > 0 ? keys : series.keys);
      const bytes = Readable.from(rows).map((text: string) => Buffer.from(text));
      const body = Readable.toWeb(bytes) as ReadableStream<Uint8Array>;
      return new Response(body, {
        headers: {
          "content-type": "text/csv; charset=utf-8",
          "content-disposition": 'attachment; filename="series.csv"',
        },
      });
    },
    log: ({ owner, id, query }) =>
      studio.log(owner, id, {
        after: query.has("after") ? numberIn(query, "after", -1) : null,
        before: query.has("before") ? numberIn(query, "before", 0) : null,
        limit: numberIn(query, "limit", 500, 1, 5000),
        level: query.get("level"),
        text: query.get("q") ?? "",
      }),
    file: ({ owner, id, name }) => {
      studio.owned(owner, id);
      return folders.file(id, name);
    },
    spans: ({ owner, id, query }) =>
      studio.spans(owner, id, numberIn(query, "from", -1e300), numberIn(query, "to", 1e300)),
    label: async ({ owner, id, body }) => studio.label(owner, id, await body()),
    async checkpoints({ owner, query }) {
      const run = query.get("run");
      const models = run === null ? null : studio.rows.row(studio.owned(owner, run)).models;
      const rows = checkpointRows(core, studio.rows, owner, models);
      const checkpoints = await context.loop.run(owner, rows);
      const listed = checkpoints.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      const totalBytes = run === null ? context.store.checkpoints.usage(owner).bytes : listed;
      return { checkpoints, totalBytes };
    },
    exhibits: ({ owner, query }) => {
      const step = query.get("step");
      return exhibits.list(owner, {
        run: studio.idOf(owner, query.get("run") ?? ""),
        step: step === null || step === "last" ? null : numberIn(query, "step", 0),
        kind: kindIn(query),
        split: query.get("split"),
        group: query.has("group") ? numberIn(query, "group", 0) : null,
        order: query.get("order") ?? "index",
        text: query.get("q") ?? "",
        cursor: numberIn(query, "cursor", 0, 0),
        limit: numberIn(query, "limit", 200, 1, 2000),
      });
    },
    exhibit: ({ owner, id, query }) =>
      exhibits.detail(owner, id, {
        from: numberIn(query, "from", 0, 0),
        to: query.has("to") ? numberIn(query, "to", 0, 0) : null,
      }),
    pause: ({ owner, id }) => steering.pause(owner, id),
    resume: ({ owner, id }) => steering.resume(owner, id),
    stop: async ({ owner, id, body }) => {
      const { how } = await body();
      return steering.stop(owner, id, { how: how as "save" });
    },
    save: async ({ owner, id, body }) => steering.save(owner, id, await body()),
    async controls({ owner, id, body }) {
      const { values } = await body();
      if (typeof values !== "object" || values === null) throw badRequest("values", "is missing");
      return steering.setControls(owner, id, values as Record<string, unknown>);
    },
    machine: ({ owner }) => machineState(core, studio.rows, owner, { startedAt, threads }),
    usage: ({ owner, query }) =>
      usageRows(core, studio.rows, owner, timeIn(query, "from"), timeIn(query, "to")),
    closeSession: ({ owner, id }) => steering.closeSession(owner, id),
    async keepSamples({ owner, body }) {
      return keepSamples(core, owner, (await body())["answers"]);
    },
    views: ({ owner }) => studio.views(owner),
    async addView({ owner, body }) {
      const { name, query } = await body();
      return studio.addView(owner, textOf(name, "name"), textOf(query, "query"));
    },
    removeView: ({ owner, id }) => studio.removeView(owner, id),
    events: ({ owner, query, request }) =>
      events.open(
        owner,
        (query.get("topics") ?? "").split(",").filter((topic) => topic !== ""),
        request.headers.get("last-event-id"),
        request.signal,
      ),
  };

  const dataPage = (name: StudioRouteName, answer: StudioHandler): ExtraPage => ({
    method: studioRoutes[name].method,
    path: toHonoPath(studioRoutes[name].path),
    name: `studio.${name}`,
    headers: dataHeaders,
    async answer(request, params) {
      checkFetchSite(request, false);
      checkStudioHeader(request);
      const caller = authenticator.identify(credentialOf(request.headers));
      if (!caller) throw new ApiError(401, "log in to the studio first");
      const answered = await answer({
        request,
        caller,
        owner: caller.owner,
        id: studio.idOf(caller.owner, params["id"] ?? ""),
        name: params["name"] ?? "",
        query: new URL(request.url).searchParams,
        body: () => readObject(request, caller.owner),
      });
      if (answered instanceof Response) return answered;
      return answered === undefined ? emptyResponse() : jsonResponse(answered);
    },
  });
  const openPage = (name: StudioRouteName, answer: (request: Request) => unknown): ExtraPage => ({
    method: studioRoutes[name].method,
    path: studioRoutes[name].path,
    name: `studio.${name}`,
    headers: dataHeaders,
    async answer(request) {
      checkFetchSite(request, false);
      checkStudioHeader(request);
      return jsonResponse(await answer(request));
    },
  });
  const known = Object.entries(handlers) as [StudioRouteName, StudioHandler][];

  return [
    logsPage(intake, authenticator, openJson),
    openPage("hello", hello),
    openPage("login", login),
    ...known.map(([name, answer]) => dataPage(name, answer)),
    {
      method: "ALL",
      path: "/studio/api/*",
      name: "studio.unknown",
      headers: dataHeaders,
      answer(request) {
        checkFetchSite(request, false);
        throw new ApiError(404, `there is no ${request.method} ${new URL(request.url).pathname}`);
      },
    },
    {
      path: "/studio/embed",
      name: "studio.embed",
      headers: embedHeaders(parts.corsOrigins),
      answer: (request) => page.answer(request, true),
    },
    ...["/studio", "/studio/*"].map((path) => ({
      path,
      name: "studio.page",
      headers: studioHeaders,
      answer: (request: Request) => page.answer(request),
    })),
  ];
}

function toHonoPath(path: string): string {
  return path.replace("files/{name}", "files/:name{.+}").replace(/\{(\w+)\}/g, ":$1");
}

/** A number of the query within bounds. */
function numberIn(
  query: URLSearchParams,
  name: string,
  otherwise: number,
  least = Number.NEGATIVE_INFINITY,
  most = Number.POSITIVE_INFINITY,
): number {
  const given = query.get(name);
  if (given === null || given === "") return otherwise;
  const value = Number(given);
  if (Number.isNaN(value) || value < least || value > most) {
    const bounds = Number.isFinite(most) ? ` from ${least} to ${most}` : "";
    throw badRequest(name, `must be a number${bounds}, got ${given}`);
  }
  return value;
}

function kindIn(query: URLSearchParams): StudioExhibitKind {
  const kind = query.get("kind") ?? "datum";
  if (kind === "datum" || kind === "rollout" || kind === "sample") return kind;
  throw badRequest("kind", `must be datum, rollout or sample, got ${kind}`);
}

/** A time of the query, as milliseconds or a date. */
function timeIn(query: URLSearchParams, name: string): number | null {
  const given = query.get(name);
  if (given === null) return null;
  const time = /^\d+$/.test(given) ? Number(given) : Date.parse(given);
  if (Number.isNaN(time)) throw badRequest(name, `must be a date or milliseconds, got ${given}`);
  return time;
}

function toObject([text]: readonly string[]): Record<string, unknown> {
  if (text === "") return {};
  let value: unknown;
  try {
    value = parseJson(text!);
  } catch {
    throw badRequest("body", "is not JSON");
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw badRequest("body", "must be a JSON object");
}

function textOf(value: unknown, field: string): string {
  if (typeof value === "string") return value;
  throw badRequest(field, "must be text");
}
