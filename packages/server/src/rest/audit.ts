import type { WireInput } from "tinker-ts/wire";
import { badRequest } from "../errors/api-error.js";
import type { Store } from "../store/store.js";

const dayMs = 86_400_000;

/** An owner's audit log of one UTC day. */
export function auditLog(
  store: Store,
  owner: string,
  query: Readonly<Record<string, string>>,
  now: number,
): WireInput<"AuditLogResponse"> {
  const from = dayOf(query["day"], now);
  const prefix = prefixOf(query["event_type"] ?? "all");
  return {
    entries: store.audit.list(owner, from, from + dayMs, prefix).map((entry) => ({
      timestamp: new Date(entry.at),
      event: entry.event,
      modelId: entry.modelId,
      tinkerPath: entry.tinkerPath,
      purpose: entry.purpose,
    })),
  };
}

/** Prefixes of events by type; some types have none here. */
const prefixes: ReadonlyMap<string, string> = new Map([
  ["all", ""],
  ["checkpoints", "checkpoint."],
  ["projects", "project."],
  ["teams", "team."],
  ["organizations", "organization."],
]);

function prefixOf(eventType: string): string {
  const prefix = prefixes.get(eventType);
  if (prefix !== undefined) return prefix;
  const types = [...prefixes.keys()].join(", ");
  throw badRequest("event_type", `must be one of ${types}; got ${JSON.stringify(eventType)}`);
}

function dayOf(day: string | undefined, now: number): number {
  if (day === undefined || day === "") return Math.floor(now / dayMs) * dayMs;
  const time = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(day) : Number.NaN;
  if (Number.isNaN(time)) throw badRequest("day", `must be a date such as 2026-01-31, got ${day}`);
  return time;
}
