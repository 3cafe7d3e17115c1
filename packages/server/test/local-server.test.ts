import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createLocalHandler, startServer } from "../src/index.js";
import { startLocalServer } from "../src/start-server.js";

const { joinLocalServer } = (await import(
  path.resolve(import.meta.dirname, "../dist/local/join-local-server.js")
)) as typeof import("../src/local/join-local-server.js");

interface Note {
  readonly pid: number;
  readonly kind: string;
}

let dataDir: string;
const env = { ...process.env, TINKER_TS_DEVICE: "", TINKER_TS_WEIGHTS: "" };
beforeEach(() => {
  dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-shared-"));
});
afterEach(async () => {
  const pid = noteOf()?.pid;
  if (pid !== undefined && pid !== process.pid) await kill(pid);
  // Servers that came too late are still about to end.
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 50 });
});

const join = () => joinLocalServer({ dataDir, env });

function noteOf(): Note | undefined {
  try {
    return JSON.parse(readFileSync(path.join(dataDir, "holder.json"), "utf8")) as Note;
  } catch {
    return undefined;
  }
}

async function kill(pid: number): Promise<void> {
  process.kill(pid, "SIGKILL");
  for (let isAlive = true; isAlive;) {
    await delay(10);
    try {
      process.kill(pid, 0);
    } catch {
      isAlive = false;
    }
  }
}

async function capabilities({ url, key }: { url: string; key: string | null }): Promise<number> {
  const headers = { "x-api-key": key ?? "" };
  return (await fetch(`${url}/api/v1/get_server_capabilities`, { headers })).status;
}

it("starts one server for all who join at the same moment, and asks for the key in the note", async () => {
  const joined = await Promise.all(Array.from({ length: 4 }, join));
  expect(new Set(joined.map(({ url }) => url)).size).toBe(1);
  expect(noteOf()).toMatchObject({ kind: "local" });
  expect(noteOf()?.pid).not.toBe(process.pid);
  const [first] = joined;
  expect(await capabilities(first!)).toBe(200);
  expect(await capabilities({ url: first!.url, key: "another-key" })).toBe(401);
  const { mode } = statSync(path.join(dataDir, "holder.json"));
  if (process.platform !== "win32") expect(mode & 0o077).toBe(0);
});

it("starts another server when the one there was has been killed", async () => {
  const first = await join();
  await kill(noteOf()!.pid);
  const second = await join();
  expect(second.key).toBe(first.key);
  expect(await capabilities(second)).toBe(200);
});

it("ends when no program has been connected for a while, and not before", async () => {
  let [endings, isOver] = [0, () => {}];
  const over = new Promise<void>((resolve) => (isOver = resolve));
  const server = await startLocalServer({ dataDir, logLevel: "silent" }, 300, () => {
    endings++;
    isOver();
  });
  try {
    const joined = await join();
    expect(joined.url).toBe(server.url);
    const headers = { "x-api-key": joined.key ?? "", accept: "text/event-stream" };
    const reading = get(`${joined.url}/studio/api/events?topics=runs`, { headers, agent: false });
    const [events] = (await once(reading, "response")) as [IncomingMessage];
    expect(events.statusCode).toBe(200);
    // Three times as long as the server waits for a connection.
    const ending = await Promise.race([over.then(() => "ended"), delay(900, "still there")]);
    expect([ending, endings]).toEqual(["still there", 0]);
    events.destroy();
    await over;
  } finally {
    await server.close();
  }
});

it("gives the directory to a server, which programs then join, and starts again when that one ends", async () => {
  const shared = await join();
  const server = await startServer({
    port: 0,
    dataDir,
    logLevel: "silent",
    apiKeys: ["tml-of-somebody-else"],
  });
  const joined = await join();
  expect(joined.url).toBe(server.url);
  expect(await capabilities(joined)).toBe(200);
  expect(await capabilities({ url: shared.url, key: shared.key }).catch(() => "gone")).toBe("gone");
  await server.close();
  const again = await join();
  expect(again.url).not.toBe(server.url);
  expect(noteOf()).toMatchObject({ kind: "local" });
});

it("serves the requests of a handler in a program beside it", async () => {
  await join();
  const handler = await createLocalHandler({ dataDir, inProcess: false });
  const request = new Request("http://localhost/api/v1/create_session", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer tml-any" },
    body: JSON.stringify({ tags: ["beside"], sdk_version: "0.1.0", user_metadata: {} }),
  });
  const response = await handler.fetch(request);
  const { session_id: id } = (await response.json()) as { session_id: string };
  expect(id).toMatch(/^[\w-]+$/);
  const { url, key } = await join();
  const headers = { "x-api-key": key ?? "" };
  const session = await fetch(`${url}/api/v1/sessions/${id}`, { headers });
  expect(session.status).toBe(200);
  await handler.close();
  for (const own of [{ threads: 1 }, { inProcess: true }]) {
    const refused = createLocalHandler({ dataDir, inProcess: false, ...own });
    await expect(refused).rejects.toThrow(/is in use by process/);
  }
});

it("refuses a directory with its engine inside a program, and names the ways out", async () => {
  const program = await createLocalHandler({ dataDir, logLevel: "silent" });
  await expect(join()).rejects.toThrow(/in use by process \d+.*inProcess.*dataDir.*"memory"/);
  await program.close();
});

it.each([
  [{ TINKER_TS_DEVICE: "gpu" }, /TINKER_TS_DEVICE is gpu, but .* runs with device cpu/],
  [{ TINKER_TS_WEIGHTS: "int8" }, /TINKER_TS_WEIGHTS is int8, but .* runs with weights f32/],
])(
  "refuses a server that computes otherwise than the environment asks: %o",
  async (own, message) => {
    await join();
    await expect(joinLocalServer({ dataDir, env: { ...env, ...own } })).rejects.toThrow(message);
  },
);

it("refuses a server of another version with both versions", async () => {
  await join();
  const note = path.join(dataDir, "holder.json");
  writeFileSync(note, readFileSync(note, "utf8").replace(/"version":"[^"]*"/, '"version":"9.9.9"'));
  await expect(join()).rejects.toThrow(/is version 9\.9\.9 .* this program has \d/);
});

it("reports why a server could not start, with the end of its log", async () => {
  const file = path.join(dataDir, "server.db");
  writeFileSync(file, "this is no database");
  await expect(join()).rejects.toThrow(
    /the local server ended with exit code 1:[\s\S]*local-server\.log/,
  );
  rmSync(file);
});

it("gives up when the caller does", async () => {
  const leaving = new AbortController();
  leaving.abort(new Error("changed my mind"));
  await expect(joinLocalServer({ dataDir, env, signal: leaving.signal })).rejects.toThrow(
    "changed my mind",
  );
});
