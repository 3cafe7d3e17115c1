import { HubError } from "../errors.js";
import { isFolder } from "../files/paths.js";
import { RepositoryCache } from "./cache.js";
import { unreachable } from "./client.js";
import { fetchSnapshot, type FetchSnapshotOptions } from "./fetch-snapshot.js";
import type { HubFiles } from "./files.js";
import { readHubSettings, type Environment, type HubSettings } from "./settings.js";
import { readdir } from "node:fs/promises";

/** Options of finding a model. */
export interface ResolveModelOptions extends FetchSnapshotOptions {
  /** Branch, tag or commit. @default "main", or what follows an "@" in the id */
  readonly revision?: string;
  /** @default "model" */
  readonly files?: HubFiles;
  /** Environment to read HF_HOME, HF_TOKEN and others from. @default process.env */
  readonly env?: Environment;
}

/** A model's folder on disk. */
export interface ResolvedModel {
  readonly folder: string;
  /** The hub's commit; null for a folder of the user's own. */
  readonly commit: string | null;
}

/** Finds a model's folder: a folder as it is, a hub id in the cache or, if it is not there, on the hub. */
export async function resolveModel(
  idOrFolder: string,
  options: ResolveModelOptions = {},
): Promise<ResolvedModel> {
  options.signal?.throwIfAborted();
  if (await isFolder(idOrFolder)) return { folder: idOrFolder, commit: null };
  const { id, revision } = parseId(idOrFolder, options.revision);
  const settings = await readHubSettings(options.env);
  const cache = new RepositoryCache(settings.cacheFolder, id);
  const files = options.files ?? "model";
  const known = await cache.commitOf(revision);
  const missing = known === null ? null : await cache.missingFiles(known, files);
  if (known !== null && missing?.length === 0) {
    return { folder: cache.snapshot(known), commit: known };
  }
  try {
    if (settings.offline) throw notCached(idOrFolder, settings, missing);
    const commit = await fetchSnapshot(settings, cache, { id, revision, files }, options);
    return { folder: cache.snapshot(commit), commit };
  } catch (error) {
    throw await withNearest(unreachable(id, error), settings, id);
  }
}

const namingErrors = new Set([
  "hub_not_found",
  "hub_unauthorized",
  "hub_unreachable",
  "model_not_cached",
]);

/** A name that is not found is often misspelled: suggest similar names from the cache. */
async function withNearest(error: unknown, settings: HubSettings, id: string): Promise<unknown> {
  if (!(error instanceof HubError) || !namingErrors.has(error.code)) return error;
  const near = (await nearestCached(settings, id)).filter((name) => name !== id);
  if (near.length === 0) return error;
  const { category, cause } = error;
  return new HubError(error.code, `${error.message} In the cache: ${near.join(", ")}.`, {
    category,
    cause,
  });
}

/** Splits an id at its "@", and checks it before it becomes part of a URL or a path. */
export function parseId(text: string, revision?: string): { id: string; revision: string } {
  const [id = "", inId, ...rest] = text.split("@");
  const name = "[A-Za-z0-9][A-Za-z0-9._-]*";
  const isId = new RegExp(`^(${name}/)?${name}$`).test(id) && !/--|\.\./.test(id);
  if (!isId || rest.length > 0) {
    throw new HubError(
      "model_not_found",
      `"${text}" is neither a folder that exists nor an id of the hub such as "Qwen/Qwen3-0.6B".`,
    );
  }
  const chosen = revision ?? inId ?? "main";
  if (/^[\w./-]+$/.test(chosen) && !chosen.includes("..")) return { id, revision: chosen };
  throw new HubError("model_not_found", `"${chosen}" is not a revision of ${id}.`);
}

function notCached(
  name: string,
  settings: HubSettings,
  missing: readonly string[] | null,
): HubError {
  const state = missing === null ? "is not" : `is incomplete (${missing.join(", ")} missing)`;
  return new HubError(
    "model_not_cached",
    `${name} ${state} in the cache ${settings.cacheFolder}, and HF_HUB_OFFLINE or ` +
      "TRANSFORMERS_OFFLINE forbids downloading it. Unset it once, or give the path of a folder.",
  );
}

/** Models of the cache with the most similar names, best first; for messages about unknown names. */
async function nearestCached(settings: HubSettings, name: string): Promise<string[]> {
  const entries = await readdir(settings.cacheFolder).catch(() => []);
  const ids = entries
    .filter((entry) => entry.startsWith("models--"))
    .map((entry) => entry.slice("models--".length).replaceAll("--", "/"));
  return nearestNames(name, ids);
}

/** Names that share most of their letters with a name, in order; at most three. */
function nearestNames(name: string, known: readonly string[]): string[] {
  return known
    .map((candidate) => ({ candidate, likeness: likeness(name, candidate) }))
    .filter((entry) => entry.likeness > 0.5)
    .toSorted((a, b) => b.likeness - a.likeness)
    .slice(0, 3)
    .map(({ candidate }) => candidate);
}

/** The share of pairs of neighbouring letters that two words have in common. */
function likeness(a: string, b: string): number {
  const [first, second] = [pairs(a), pairs(b)];
  const common = [...first].filter((pair) => second.has(pair)).length;
  return (2 * common) / Math.max(1, first.size + second.size);
}

function pairs(word: string): Set<string> {
  const lower = word.toLowerCase();
  return new Set(Array.from(lower, (letter, index) => letter + (lower[index + 1] ?? "")));
}
