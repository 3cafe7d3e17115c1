import type { StudioServer } from "./server.js";

const sent = new Map<string, number>();

/** Sends lines of a logger, as any program would. */
export async function logLines(
  server: StudioServer,
  run: string,
  entries: readonly object[],
  writer = "test",
): Promise<void> {
  const name = `${server.url} ${run} ${writer}`;
  const before = sent.get(name) ?? 0;
  sent.set(name, before + entries.length);
  const lines = entries.map((entry, index) =>
    JSON.stringify({ run, writer, n: before + index + 1, ...entry }),
  );
  const response = await fetch(`${server.url}/api/v1/logs`, {
    method: "POST",
    headers: { "content-type": "application/x-ndjson", "x-api-key": "tml-studio" },
    body: `${lines.join("\n")}\n`,
  });
  if (!response.ok) throw new Error(`logs answered ${response.status}: ${await response.text()}`);
}

/** Asks the studio's own endpoints, as its page does. */
export async function ask<T>(server: StudioServer, target: string, body?: unknown): Promise<T> {
  const response = await fetch(`${server.url}/studio/api/${target}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { "x-tinker-studio": "1", "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${target} answered ${response.status}: ${text}`);
  return (text ? JSON.parse(text) : undefined) as T;
}

/** The address of a run. */
export function runAddress(server: StudioServer, run: string, query = ""): string {
  return `${server.url}/studio/runs/${encodeURIComponent(run)}${query}`;
}
