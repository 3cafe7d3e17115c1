import { HubError } from "../errors.js";
import { TransientError } from "./transient-error.js";
import type { HubSettings } from "./settings.js";

/** One request to the hub. */
export interface HubRequest {
  readonly method: "GET" | "HEAD";
  readonly url: string;
  /** The requested thing, for error messages: `the model org/name`. */
  readonly subject: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** @default "follow" */
  readonly redirect?: "follow" | "manual";
  /** Timeout without data, in milliseconds. */
  readonly stallTimeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** A response of the hub before its body is read. */
export interface HubResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly url: string;
  text(): Promise<string>;
  chunks(): AsyncGenerator<Uint8Array>;
  /** Drops the rest of the response. */
  cancel(): void;
}

/** Sends a request; failures are a TransientError if a retry may help, else a HubError. */
export async function sendToHub(settings: HubSettings, request: HubRequest): Promise<HubResponse> {
  const watch = new StallWatch(request);
  let response: Response;
  try {
    response = await fetch(request.url, {
      method: request.method,
      redirect: request.redirect ?? "follow",
      signal: watch.signal,
      headers: {
        // Sizes and ranges count the bytes of the file, not of a compressed form of it.
        "accept-encoding": "identity",
        "user-agent": "tinker-ts",
        ...(settings.token === null ? {} : { authorization: `Bearer ${settings.token}` }),
        ...request.headers,
      },
    });
  } catch (error) {
    watch.stop();
    throw watch.explain(error);
  }
  if (response.status >= 400) {
    watch.stop();
    await response.body?.cancel();
    throw refusal(settings, request, response);
  }
  return {
    status: response.status,
    headers: response.headers,
    url: response.url || request.url,
    text: async () => {
      const parts: Uint8Array[] = [];
      for await (const chunk of readChunks(response, watch)) parts.push(chunk);
      return Buffer.concat(parts).toString("utf8");
    },
    chunks: () => readChunks(response, watch),
    cancel: () => {
      watch.stop();
      response.body?.cancel().catch(() => undefined);
    },
  };
}

async function* readChunks(response: Response, watch: StallWatch): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response.body ?? []) {
      watch.restart();
      yield chunk;
    }
  } catch (error) {
    throw watch.explain(error);
  } finally {
    watch.stop();
  }
}

/** Aborts a request without data for too long, and records the reason. */
class StallWatch {
  readonly signal: AbortSignal;
  readonly #request: HubRequest;
  readonly #stalled = new AbortController();
  readonly #timer: NodeJS.Timeout;

  constructor(request: HubRequest) {
    this.#request = request;
    this.#timer = setTimeout(() => this.#stalled.abort(), request.stallTimeoutMs);
    this.signal = AbortSignal.any([
      this.#stalled.signal,
      ...(request.signal ? [request.signal] : []),
    ]);
  }

  restart(): void {
    this.#timer.refresh();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  explain(cause: unknown): unknown {
    this.#request.signal?.throwIfAborted();
    const host = new URL(this.#request.url).host;
    const what = this.#stalled.signal.aborted
      ? `${host} sent nothing for ${this.#request.stallTimeoutMs / 1000} s`
      : `the connection to ${host} failed (${describe(cause)})`;
    return new TransientError(what, { cause });
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error && cause.message ? cause.message : error.message;
}

/** The longest `retry-after` that is respected; longer ones are cut to it. */
const maxWaitMs = 300_000;

const passingStatuses = new Set([408, 429, 500, 502, 503, 504]);

function refusal(settings: HubSettings, request: HubRequest, response: Response): Error {
  const { status, headers } = response;
  const { subject } = request;
  const host = new URL(request.url).host;
  const said = headers.get("x-error-message");
  if (passingStatuses.has(status)) {
    const seconds = Number(headers.get("retry-after") ?? NaN);
    const retryAfterMs = Number.isFinite(seconds) ? Math.min(seconds * 1000, maxWaitMs) : null;
    return new TransientError(`${host} answered ${status}`, { retryAfterMs, wasReached: true });
  }
  const fail = (code: string, message: string) =>
    new HubError(code, said ? `${message} (${host} says: ${said})` : message);
  const errorCode = headers.get("x-error-code");
  if (status === 403 || errorCode === "GatedRepo") {
    return fail(
      "hub_forbidden",
      `You have no access to ${subject}. Accept its terms on ${settings.endpoint} and set ` +
        "HF_TOKEN to a token that may read it.",
    );
  }
  if (status === 401) {
    const login = settings.token === null ? "Set HF_TOKEN" : "Check that HF_TOKEN is valid";
    const message = `There is no access to ${subject}: it does not exist, or it is private.`;
    return fail("hub_unauthorized", `${message} ${login}.`);
  }
  if (status === 404) return fail("hub_not_found", notFound(subject, errorCode));
  return fail("hub_failed", `${host} answered ${status} when asked for ${subject}.`);
}

function notFound(subject: string, errorCode: string | null): string {
  const what = errorCode === "RevisionNotFound" ? "such a revision" : "such a repository or file";
  return `The hub does not have ${subject}: there is no ${what}. Check the spelling, or give the path of a folder.`;
}
