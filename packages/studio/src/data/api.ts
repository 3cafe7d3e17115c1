import { signal } from "@preact/signals";
import { studioRoutes, type StudioRouteName } from "tinker-ts/wire/studio";
import { token } from "./token.js";

/** A request that failed. */
export class ApiFailure extends Error {
  /** The HTTP status; 0 without a response. */
  readonly status: number;
  /** The server's error code. */
  readonly code: string | null;
  /** The requested target. */
  readonly target: string;

  constructor(message: string, fields: { status: number; code?: string | null; target: string }) {
    super(message);
    this.status = fields.status;
    this.code = fields.code ?? null;
    this.target = fields.target;
  }
}

/** True while the server requires a login. */
export const needsLogin = signal(false);

/** Parameters of a call: path, query and body. */
export interface CallOptions {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | readonly string[] | null | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Calls an endpoint of the studio and reads its JSON. */
export async function call<T>(name: StudioRouteName, options: CallOptions = {}): Promise<T> {
  const response = await callRaw(name, options);
  const text = await response.text();
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** Calls an endpoint of the studio. */
export function callRaw(name: StudioRouteName, options: CallOptions = {}): Promise<Response> {
  return send(studioRoutes[name].method, addressOf(name, options), options);
}

/** The address of an endpoint with its parameters. */
export function addressOf(
  name: StudioRouteName,
  { params = {}, query = {} }: CallOptions = {},
): string {
  const path = studioRoutes[name].path.replace(/\{(\w+)\}/g, (_, key: string) =>
    (params[key] ?? "").split("/").map(encodeURIComponent).join("/"),
  );
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    if (Array.isArray(value)) for (const one of value as readonly string[]) search.append(key, one);
    else search.set(key, String(value));
  }
  const text = search.toString();
  return text ? `${path}?${text}` : path;
}

/** Sends a request to this server with the login of the page; an error response is thrown as an `ApiFailure`. */
export async function send(
  method: string,
  target: string,
  { body, headers: more, signal: abort }: Pick<CallOptions, "body" | "headers" | "signal"> = {},
): Promise<Response> {
  const headers: Record<string, string> = { "x-tinker-studio": "1", ...more };
  if (token.value) headers["authorization"] = `Bearer ${token.value.token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(target, {
      method,
      headers,
      credentials: "omit",
      cache: "no-store",
      ...(body !== undefined ? { body: JSON.stringify(body) } : {}),
      ...(abort ? { signal: abort } : {}),
    });
  } catch (error) {
    if (abort?.aborted) throw error;
    throw new ApiFailure("no answer from the server", { status: 0, target });
  }
  if (response.ok) return response;
  if (response.status === 401) needsLogin.value = true;
  throw await failureOf(response, target);
}

async function failureOf(response: Response, target: string): Promise<ApiFailure> {
  const { status } = response;
  const text = await response.text().catch(() => "");
  try {
    // The studio's own routes, those of the API and those of OpenAI's clients each have their form.
    const value = JSON.parse(text) as Record<"error" | "detail" | "code", unknown>;
    const error = value.error ?? value.detail;
    const inner = typeof error === "object" ? (error as { message?: unknown })?.message : error;
    const message = typeof inner === "string" ? inner : text;
    const code = typeof value.code === "string" ? value.code : null;
    return new ApiFailure(message, { status, target, code });
  } catch {
    return new ApiFailure(text || `the server answered ${status}`, { status, target });
  }
}
