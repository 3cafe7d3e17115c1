import { badRequest } from "../errors/api-error.js";

type Query = Readonly<Record<string, string>>;

/** A page of a list. */
export interface Page {
  readonly limit: number;
  readonly offset: number;
}

const maxLimit = 10_000;

/** Reads `limit` and `offset`. */
export function pageOf(query: Query, defaultLimit: number): Page {
  return {
    limit: integerOf(query, "limit", defaultLimit, maxLimit),
    offset: integerOf(query, "offset", 0, Number.MAX_SAFE_INTEGER),
  };
}

/** Reads `access_scope`: own things only, or everything that may be read. */
export function isAccessible(query: Query): boolean {
  const scope = query["access_scope"] ?? "owned";
  if (scope === "owned" || scope === "accessible") return scope === "accessible";
  throw badRequest("access_scope", `must be owned or accessible, got ${JSON.stringify(scope)}`);
}

function integerOf(query: Query, name: string, fallback: number, max: number): number {
  const text = query[name];
  if (text === undefined || text === "") return fallback;
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= max) return value;
  throw badRequest(name, `must be a whole number from 0 to ${max}, got ${JSON.stringify(text)}`);
}
