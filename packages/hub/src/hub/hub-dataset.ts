import { readdir } from "node:fs/promises";
import path from "node:path";
import { HubError } from "../errors.js";
import { isFile } from "../files/paths.js";
import { RepositoryCache } from "./cache.js";
import { unreachable } from "./client.js";
import { fetchIntoCache, openClient, type FetchSnapshotOptions } from "./fetch-snapshot.js";
import { ProgressCounter } from "./progress.js";
import { parseId } from "./resolve-model.js";
import { readHubSettings, type Environment, type HubSettings } from "./settings.js";

/** Options of reading a data set. */
export interface HubDatasetOptions extends FetchSnapshotOptions {
  /** @default "train" */
  readonly split?: string;
  /** The configuration, for data sets with several; the name of a folder. */
  readonly config?: string;
  /** Branch, tag or commit. @default "main", or what follows an "@" in the id */
  readonly revision?: string;
  /** Environment to read HF_HOME, HF_TOKEN and others from. @default process.env */
  readonly env?: Environment;
}

/** The revision in which the hub keeps every data set as Parquet files. */
const convertedRevision = "refs/convert/parquet";
const readable = /\.(parquet|jsonl|ndjson|json|csv|tsv)$/;

/**
 * The files of one split of a data set, one by one in order: each is downloaded on demand, and kept in
 * the cache shared with Hugging Face's tools. Parquet files are preferred.
 */
export async function* hubDatasetFiles(
  idOrName: string,
  options: HubDatasetOptions = {},
): AsyncGenerator<string> {
  const { id, revision } = parseId(idOrName, options.revision);
  const settings = await readHubSettings(options.env);
  const own = await openRepository(settings, id, revision, options);
  const files = splitFiles(own.files, options);
  if (files.some((name) => name.endsWith(".parquet")) || settings.offline) {
    yield* download(own, parquetFirst(files), id, options);
    return;
  }
  const converted = await openRepository(settings, id, convertedRevision, options).catch(
    (error: unknown) => {
      if (error instanceof HubError && error.code === "hub_unreachable") throw error;
      return undefined;
    },
  );
  const parquet = converted ? splitFiles(converted.files, options) : [];
  if (converted && parquet.length > 0) yield* download(converted, parquet, id, options);
  else yield* download(own, files, id, options);
}

interface Repository {
  readonly files: readonly string[];
  readonly fetch: (name: string) => Promise<string>;
}

async function openRepository(
  settings: HubSettings,
  id: string,
  revision: string,
  options: HubDatasetOptions,
): Promise<Repository> {
  const cache = new RepositoryCache(settings.cacheFolder, id, "dataset");
  if (settings.offline) return openCached(cache, id, revision);
  const client = openClient(settings, id, options, "dataset");
  const progress = new ProgressCounter(options.onProgress);
  try {
    const { commit, files } = await client.repository(revision);
    await cache.rememberCommit(revision, commit);
    return {
      files,
      fetch: async (name) => {
        const file = path.join(cache.snapshot(commit), name);
        const place = { client, cache, commit, progress };
        if (!(await isFile(file))) await fetchIntoCache(place, [name], options);
        return file;
      },
    };
  } catch (error) {
    throw unreachable(id, error);
  }
}

async function openCached(
  cache: RepositoryCache,
  id: string,
  revision: string,
): Promise<Repository> {
  const commit = await cache.commitOf(revision);
  const folder = commit === null ? "" : cache.snapshot(commit);
  const names = commit === null ? [] : await readdir(folder, { recursive: true }).catch(() => []);
  if (names.length === 0) {
    throw new HubError(
      "dataset_not_cached",
      `The data set ${id} is not in the cache, and HF_HUB_OFFLINE forbids downloading it.`,
    );
  }
  return { files: names, fetch: (name) => Promise.resolve(path.join(folder, name)) };
}

async function* download(
  { fetch }: Repository,
  names: readonly string[],
  id: string,
  { split = "train" }: HubDatasetOptions,
): AsyncGenerator<string> {
  if (names.length === 0) {
    throw new HubError(
      "dataset_not_found",
      `The data set ${id} has no files of the split "${split}".`,
    );
  }
  try {
    for (const name of names) yield await fetch(name);
  } catch (error) {
    throw unreachable(id, error);
  }
}

/** Readable files with the split's name in their path; a data set with one split need not name it. */
function splitFiles(
  files: readonly string[],
  { split = "train", config }: HubDatasetOptions,
): string[] {
  const names = files
    .filter((name) => readable.test(name) && !/(^|\/)(dataset_infos|config)\.json$/.test(name))
    .filter((name) => config === undefined || name.split("/").includes(config))
    .toSorted();
  const isNamed = new RegExp(`(^|[/_.-])${split.replace(/[^\w]/g, "\\$&")}([/_.-]|$)`);
  const named = names.filter((name) => isNamed.test(name));
  const namesSplits = names.some((name) =>
    /(^|[/_.-])(train|test|validation)([/_.-]|$)/.test(name),
  );
  return named.length > 0 || namesSplits || split !== "train" ? named : names;
}

function parquetFirst(files: readonly string[]): string[] {
  const parquet = files.filter((name) => name.endsWith(".parquet"));
  return parquet.length > 0 ? parquet : [...files];
}
