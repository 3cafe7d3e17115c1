import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { startServer } from "@tinker-ts/server";
import { ServiceClient } from "tinker-ts";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { PtyProcess } from "./support/pty-process.js";
import { runCommand, type Finished } from "./support/run-command.js";

const key = "tml-a-secret-key-of-alice";

let home: string;
let data: string;
let server: Awaited<ReturnType<typeof startServer>>;
const outputs: Finished[] = [];

beforeAll(async () => {
  data = mkdtempSync(path.join(tmpdir(), "tinker-ts-auth-"));
  const apiKeys = [{ key, owner: "alice", email: "alice@example.org" }];
  server = await startServer({ port: 0, dataDir: data, apiKeys, logLevel: "silent" });
});
afterAll(async () => {
  await server.close();
  rmSync(data, { recursive: true, force: true });
});
beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), "tinker-ts-home-"));
});
afterEach(() => {
  rmSync(home, { recursive: true, force: true });
  for (const { out, err } of outputs.splice(0)) expect(out + err).not.toContain("secret");
});

const run = async (args: string[], env: Record<string, string> = {}, input = "") => {
  const finished = await runCommand(args, {
    input,
    env: { HOME: home, TINKER_BASE_URL: server.url, ...env },
  });
  outputs.push(finished);
  return finished;
};

const file = () => path.join(home, ".tinker", "credentials.json");
const stored = () => JSON.parse(readFileSync(file(), "utf8")) as Record<string, unknown>;
const login = () => run(["auth", "login"], {}, `${key}\n`);

it("login stores a checked key in the form of the Python program, for its owner alone", async () => {
  expect(await login()).toMatchObject({
    code: 0,
    out: 'Logged in with the key "alice" of alice@example.org.\n',
  });
  const { default: id } = stored();
  expect(stored()).toEqual({
    version: 1,
    default: id,
    keys: {
      [String(id)]: {
        type: "manual",
        key,
        name: "alice",
        details: { org_details: { name: "" }, user_details: { email: "alice@example.org" } },
      },
    },
  });
  expect(statSync(file()).mode & 0o777).toBe(0o600);
  expect(statSync(path.dirname(file())).mode & 0o777).toBe(0o700);
  expect(readdirSync(path.dirname(file()))).toEqual(["credentials.json"]);
});

it("login keeps the folder's permissions and other keys", async () => {
  mkdirSync(path.dirname(file()));
  chmodSync(path.dirname(file()), 0o755);
  const other = { type: "manual", key: "tml-other", name: "other" };
  writeFileSync(file(), JSON.stringify({ version: 1, default: null, keys: { 7: other } }));
  expect((await login()).code).toBe(0);
  expect(stored()["keys"]).toMatchObject({ 7: other });
  expect(statSync(path.dirname(file())).mode & 0o777).toBe(0o755);
  expect(statSync(file()).mode & 0o777).toBe(0o600);
});

it("login refuses a key that the server does not take, and a second login", async () => {
  const wrong = await run(["auth", "login"], {}, "tml-wrong-secret\n");
  expect(wrong).toMatchObject({ code: 1, out: "" });
  expect(wrong.err).toContain("The server does not take this key.");
  expect((await run(["auth", "login"])).err).toContain("No key was given.");
  expect(() => stored()).toThrow();
  await login();
  expect((await login()).err).toContain('Already logged in with the key "alice"');
});

it("the stored key is used by the client and by commands, after options, variables and the command", async () => {
  await login();
  const status = async (env: Record<string, string>, args: string[] = []) => {
    const { out, code } = await run(["auth", "status", "--json", ...args], env);
    const { source, is_accessible: isAccessible } = JSON.parse(out) as Record<string, unknown>;
    return { source, isAccessible, code };
  };
  expect(await status({})).toEqual({
    source: `"alice" in ${file()}`,
    isAccessible: true,
    code: 0,
  });
  const command = `${JSON.stringify(process.execPath)} -e "console.log('tml-bad')"`;
  expect(await status({ TINKER_CREDENTIAL_CMD: command })).toMatchObject({
    source: "TINKER_CREDENTIAL_CMD",
    code: 1,
  });
  expect(await status({ TINKER_CREDENTIAL_CMD: command, TINKER_API_KEY: "tml-bad" })).toMatchObject(
    { source: "TINKER_API_KEY", code: 1 },
  );
  expect(await status({ TINKER_API_KEY: "tml-bad" }, ["--api-key", key])).toEqual({
    source: "--api-key",
    isAccessible: true,
    code: 0,
  });
  const options = { baseUrl: server.url, env: { HOME: home }, telemetry: false };
  await using service = new ServiceClient(options);
  expect((await service.createRestClient().whoami()).userUrn).toContain("alice");
});

it("logout removes the default key and leaves the others", async () => {
  await login();
  const { keys } = stored();
  const other = { type: "manual", key: "tml-other", name: "other" };
  writeFileSync(file(), JSON.stringify({ ...stored(), keys: { ...(keys as object), 7: other } }));
  const { out } = await run(["auth", "logout"]);
  expect(out).toBe('Removed the key "alice". It stays valid.\n');
  expect(stored()).toEqual({ version: 1, keys: { 7: other } });
  expect((await run(["auth", "logout"])).err).toContain("No key is stored.");
  const status = await run(["auth", "status"]);
  expect(status.code).toBe(1);
  expect(status.out).toContain("tinker-ts auth login");
});

it("a file that cannot be understood is an error that shows nothing of it", async () => {
  mkdirSync(path.dirname(file()));
  writeFileSync(file(), '{"version": 1, "default": "1", "keys": {"1": {"key": "tml-secret');
  const { code, err } = await run(["auth", "status"]);
  expect([code, err]).toEqual([1, expect.stringContaining("not of the expected form")]);
  const make = () => new ServiceClient({ env: { HOME: home } });
  expect(make).toThrow(/credentials.json cannot be read.*expected form/);
});

it("a key made for this machine alone is deleted at the server too", async () => {
  const seen: string[] = [];
  const keyServer: Server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url} ${String(request.headers["x-api-key"])}`);
    response.writeHead(seen.length === 1 ? 500 : 204).end();
  }).listen(0, "127.0.0.1");
  await once(keyServer, "listening");
  const url = `http://127.0.0.1:${(keyServer.address() as AddressInfo).port}`;
  const generated = { type: "generated", key: "tml-generated-secret", name: "made", details: {} };
  const write = () => {
    mkdirSync(path.dirname(file()), { recursive: true });
    writeFileSync(file(), JSON.stringify({ version: 1, default: "3", keys: { 3: generated } }));
  };
  write();
  const failed = await run(["auth", "logout"], { TINKER_BASE_URL: url });
  expect(failed.err).toContain("was removed here, but not at the server: it answered 500");
  expect(stored()).toEqual({ version: 1, keys: {} });
  write();
  const done = await run(["auth", "logout"], { TINKER_BASE_URL: url });
  expect(done.out).toContain("It was deleted at the server too.");
  expect(seen).toEqual(Array(2).fill("DELETE /api/v1/auth/apikey/me tml-generated-secret"));
  keyServer.close();
});

it("a key that is typed on a terminal is not echoed", async () => {
  const env = { HOME: home, TINKER_BASE_URL: server.url };
  const typed = new PtyProcess(["auth", "login"], { cwd: home, env });
  await typed.sees(/API key:/);
  typed.types(`${key}\r`);
  expect(await typed.finished).toBe(0);
  expect(typed.screen).toContain("Logged in");
  expect(typed.screen).not.toContain("secret");
});
