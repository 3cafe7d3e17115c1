import {
  readStudioSeries,
  type StudioRun,
  type StudioRunDetail,
  type StudioRuns,
  type StudioSeries,
} from "tinker-ts/wire";
import { passBody, type TestApp } from "../support/test-app.js";

/** How the studio's page would ask. */
export interface StudioOptions {
  readonly key?: string;
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Asks for something of the studio and returns the raw answer. */
export function askStudio(
  app: TestApp,
  path: string,
  { key, method = "GET", body, headers, signal }: StudioOptions = {},
): Promise<Response> {
  return app.handle(
    new Request(`http://localhost${path.startsWith("/") ? path : `/studio/api/${path}`}`, {
      method,
      headers: {
        "x-tinker-studio": "1",
        "sec-fetch-site": "same-origin",
        ...(key ? { "x-api-key": key } : {}),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    }),
  );
}

/** Asks for JSON that must come. */
export async function getStudio<T>(
  app: TestApp,
  path: string,
  options?: StudioOptions,
): Promise<T> {
  const response = await askStudio(app, path, options);
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** Changes something. */
export function postStudio<T>(
  app: TestApp,
  path: string,
  body: unknown = {},
  options: StudioOptions = {},
): Promise<T> {
  return getStudio(app, path, { ...options, method: "POST", body });
}

/** All runs. */
export async function listRuns(
  app: TestApp,
  query = "",
  options?: StudioOptions,
): Promise<StudioRun[]> {
  return [...(await getStudio<StudioRuns>(app, `runs?${query}`, options)).runs];
}

/** One run with everything. */
export function getRun(
  app: TestApp,
  id: string,
  options?: StudioOptions,
): Promise<StudioRunDetail> {
  return getStudio(app, `runs/${encodeURIComponent(id)}`, options);
}

/** Curves. */
export async function getSeries(
  app: TestApp,
  run: string,
  keys: readonly string[],
  extra: Readonly<Record<string, string>> = {},
  options?: StudioOptions,
): Promise<StudioSeries[]> {
  const query = new URLSearchParams({ runs: run, ...extra });
  for (const key of keys) query.append("keys", key);
  const response = await askStudio(app, `series?${query.toString()}`, options);
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return readStudioSeries(await response.arrayBuffer());
}

/** Trains a model for some steps, each of some passes; returns the next sequence number. */
export async function trainSteps(
  app: TestApp,
  modelId: string,
  steps: number,
  { firstSeq = 1, passes = 1, key }: { firstSeq?: number; passes?: number; key?: string } = {},
): Promise<number> {
  let seq = firstSeq;
  const options = key === undefined ? {} : { key };
  for (let step = 0; step < steps; step++) {
    for (let pass = 0; pass < passes; pass++) {
      const body = passBody(modelId, seq++, [
        [1, 2, 3 + pass],
        [4, 5, 6],
      ]);
      const { requestId } = await app.call("forwardBackward", body, options);
      await app.result(requestId, options);
    }
    const adamParams = { learningRate: 0.1 };
    const { requestId } = await app.call(
      "optimStep",
      { modelId, seqId: seq++, adamParams },
      options,
    );
    const result = await app.result(requestId, options);
    if ("error" in result) throw new Error(String(result["error"]));
  }
  return seq;
}
