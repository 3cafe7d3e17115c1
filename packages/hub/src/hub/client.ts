import { HubError } from "../errors.js";
import { isObject } from "../files/json.js";
import type { RepositoryKind } from "./cache.js";
import type { RemoteFile } from "./download.js";
import { sendToHub, type HubRequest, type HubResponse } from "./http.js";
import { TransientError, retryTransient, type RetryPolicy } from "./transient-error.js";
import type { HubSettings } from "./settings.js";

/** Timeout and attempts for the hub's first response: within five seconds in total. */
const firstContactMs = 2_000;
const maxUnreached = 2;

/** A repository at one commit. */
export interface RepositoryInfo {
  readonly commit: string;
  readonly files: readonly string[];
}

/** The three requests to the hub about one repository. */
export class HubClient {
  readonly #settings: HubSettings;
  readonly #id: string;
  readonly #kind: RepositoryKind;
  readonly #retryPolicy: RetryPolicy;
  readonly #stallTimeoutMs: number;
  readonly #signal: AbortSignal | undefined;

  constructor(
    settings: HubSettings,
    id: string,
    options: {
      kind?: RepositoryKind;
      retryPolicy: RetryPolicy;
      stallTimeoutMs: number;
      signal?: AbortSignal | undefined;
    },
  ) {
    this.#settings = settings;
    this.#id = id;
    this.#kind = options.kind ?? "model";
    this.#retryPolicy = options.retryPolicy;
    this.#stallTimeoutMs = options.stallTimeoutMs;
    this.#signal = options.signal;
  }

  /** The commit of a revision, and its files. */
  async repository(revision: string): Promise<RepositoryInfo> {
    const path = `/api/${this.#kind}s/${this.#id}/revision/${encodeURIComponent(revision)}`;
    const request = { url: this.#url(path), subject: this.#subject(revision) };
    // An unreachable hub is an error at once; a hub that answers that it is busy is retried.
    const stallTimeoutMs = Math.min(this.#stallTimeoutMs, firstContactMs);
    let unreached = 0;
    const text = await this.#retry(async () => {
      try {
        return await (await this.#send({ ...request, stallTimeoutMs })).text();
      } catch (error) {
        if (!(error instanceof TransientError) || error.wasReached) throw error;
        if (++unreached < maxUnreached) throw error;
        throw notReached(this.#settings, error);
      }
    });
    return parseRepository(this.#id, text);
  }

  /** The description of a file of a commit, before it is downloaded. */
  async file(commit: string, name: string): Promise<RemoteFile> {
    const place = this.#kind === "model" ? this.#id : `datasets/${this.#id}`;
    const path = `/${place}/resolve/${commit}/${name.split("/").map(encodeURIComponent).join("/")}`;
    const response = await this.#retry(() => this.#head(this.#url(path), name));
    const { headers } = response;
    response.cancel();
    const etag = (headers.get("x-linked-etag") ?? headers.get("etag") ?? "")
      .replace(/^W\//, "")
      .replaceAll('"', "");
    const size = headers.get("x-linked-size") ?? headers.get("content-length") ?? "";
    if (!/^[\w.+-]+$/.test(etag) || !/^\d+$/.test(size)) {
      throw new HubError("hub_failed", `The hub did not report hash and size of ${name}.`);
    }
    const actual = headers.get("x-repo-commit");
    if (actual !== null && actual !== commit) {
      throw new HubError("hub_failed", `The hub sent ${name} of commit ${actual}, not ${commit}.`);
    }
    return { name, url: response.url, etag, sizeBytes: Number(size) };
  }

  /** A file's contents from a position on; one attempt, because the caller tracks progress. */
  async contents(file: RemoteFile, fromByte: number): Promise<HubResponse> {
    const headers: Record<string, string> = fromByte > 0 ? { range: `bytes=${fromByte}-` } : {};
    return this.#send({ url: file.url, subject: `${file.name} of ${this.#id}`, headers });
  }

  // The response for a large file is a redirect to its storage; its description is in the
  // redirect itself. For a renamed repository it is a redirect within the hub, which is followed.
  async #head(url: string, name: string): Promise<HubResponse> {
    let current = url;
    for (let redirects = 0; redirects < 5; redirects++) {
      const response = await this.#send({
        method: "HEAD",
        url: current,
        subject: `${name} of ${this.#id}`,
        redirect: "manual",
      });
      const location = response.headers.get("location");
      const isElsewhere = location === null || response.headers.has("x-linked-etag");
      if (isElsewhere || response.status < 300) return { ...response, url: current };
      response.cancel();
      current = new URL(location, current).href;
    }
    throw new HubError("hub_failed", `The hub redirects ${name} in circles.`);
  }

  async #send(
    request: Pick<HubRequest, "url" | "subject"> & Partial<HubRequest>,
  ): Promise<HubResponse> {
    return sendToHub(this.#settings, {
      method: "GET",
      stallTimeoutMs: this.#stallTimeoutMs,
      signal: this.#signal,
      ...request,
    });
  }

  async #retry<T>(attempt: () => Promise<T>): Promise<T> {
    return retryTransient(attempt, this.#retryPolicy, { signal: this.#signal });
  }

  #url(path: string): string {
    return `${this.#settings.endpoint}${path}`;
  }

  #subject(revision: string): string {
    const what = this.#kind === "model" ? "model" : "data set";
    return `the ${what} ${this.#id}${revision === "main" ? "" : ` at revision ${revision}`}`;
  }
}

/** Turns a failure that persisted into an error for the user. */
export function unreachable(id: string, failure: unknown): unknown {
  if (!(failure instanceof TransientError)) return failure;
  return new HubError(
    "hub_unreachable",
    `Downloading ${id} failed: ${failure.message}. Try again: the downloaded part is kept.`,
    { category: "internal", cause: failure },
  );
}

function notReached({ endpoint }: HubSettings, cause: TransientError): HubError {
  return new HubError(
    "hub_unreachable",
    `The hub cannot be reached: ${cause.message}. Check the network and HF_ENDPOINT (${endpoint}), or give the path of a folder.`,
    { category: "internal", cause },
  );
}

function parseRepository(id: string, text: string): RepositoryInfo {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = null;
  }
  const commit = isObject(json) ? json["sha"] : undefined;
  const siblings = isObject(json) ? json["siblings"] : undefined;
  if (typeof commit !== "string" || !/^[0-9a-f]{40}$/.test(commit) || !Array.isArray(siblings)) {
    throw new HubError("hub_failed", `The hub's description of ${id} cannot be read.`);
  }
  const files = siblings.map((entry: unknown) => (isObject(entry) ? entry["rfilename"] : null));
  return { commit, files: files.filter((name) => typeof name === "string") };
}
