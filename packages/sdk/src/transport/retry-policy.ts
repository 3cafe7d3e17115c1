import { isRetryableStatus } from "../errors/api-error.js";
import type { Headers, HttpResponse } from "./message.js";

const maxAskedDelayMs = 60_000;

/** Whether an answer is worth another attempt; the server's own word counts more than the status. */
export function shouldRetry({
  status,
  headers,
}: Pick<HttpResponse, "status" | "headers">): boolean {
  const asked = headers["x-should-retry"];
  if (asked === "true") return true;
  if (asked === "false") return false;
  return isRetryableStatus(status) || status >= 600;
}

/** How long to wait before attempt `retryIndex + 1`: what the server asks for, else growing. */
export function retryDelayMs(
  retryIndex: number,
  headers: Headers | undefined,
  wallTimeMs: number,
  random: () => number,
): number {
  return (
    askedDelayMs(headers, wallTimeMs) ??
    Math.min(500 * 2 ** retryIndex, 10_000) * (1 - 0.25 * random())
  );
}

/** How long a server asks to be left alone; undefined when it does not, or for longer than is believed. */
export function askedDelayMs(headers: Headers | undefined, wallTimeMs: number): number | undefined {
  const asked = headers && readDelayMs(headers, wallTimeMs);
  return asked !== undefined && asked > 0 && asked <= maxAskedDelayMs ? asked : undefined;
}

function readDelayMs(headers: Headers, wallTimeMs: number): number | undefined {
  const milliseconds = asNumber(headers["retry-after-ms"]);
  if (milliseconds !== undefined) return milliseconds;
  const text = headers["retry-after"];
  const seconds = asNumber(text);
  if (seconds !== undefined) return seconds * 1000;
  const moment = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(moment) ? undefined : moment - wallTimeMs;
}

function asNumber(text: string | undefined): number | undefined {
  if (text === undefined || text.trim() === "") return undefined;
  const value = Number(text);
  return Number.isNaN(value) ? undefined : value;
}
