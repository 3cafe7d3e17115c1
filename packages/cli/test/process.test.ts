import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { baseModel, LiveServer, modelFolder } from "./support/live-server.js";
import { CliProcess, runProcess } from "./support/run-process.js";

let folder: string;
const running: CliProcess[] = [];

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-process-"));
});

afterAll(async () => {
  for (const program of running) {
    program.kill("SIGKILL");
    await program.finished;
  }
  rmSync(folder, { recursive: true, force: true });
});

function start(args: readonly string[], env: Record<string, string> = {}): CliProcess {
  const program = new CliProcess(args, env);
  running.push(program);
  return program;
}

function serve(name: string, ...options: string[]): CliProcess {
  const model = `${baseModel}=${modelFolder}`;
  const data = path.join(folder, name);
  return start(["serve", "--port", "0", "--model", model, "--data", data, ...options]);
}

const listening = /^listening on (http:\/\/127\.0\.0\.1:\d+)\n$/;

describe("the program", () => {
  it.each([
    [["--help"], 0],
    [["nonsense"], 2],
    [["models"], 1],
  ])("%j ends with %i and keeps results and complaints apart", async (args, code) => {
    const result = await runProcess(args);
    expect(result.code).toBe(code);
    expect(code === 0 ? result.err : result.out).toBe("");
    expect(code === 0 ? result.out : result.err).not.toBe("");
  });

  it("doctor keeps warnings of graphics drivers out of its output", async () => {
    const { code, err, out } = await runProcess(["doctor"], {
      env: { TINKER_TS_DATA_DIR: path.join(folder, "doctor") },
    });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^GPU/m);
  });

  it("ends quietly when its reader goes away", async () => {
    const program = start(["completion", "zsh"]);
    program.stopsReading();
    const { signalName, err } = await program.finished;
    expect({ signalName, err }).toEqual({ signalName: null, err: "" });
  });
});

describe("streaming in this process", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("ends with the usual exit code on %s: %i", async (name, code) => {
    const env = { TINKER_TS_DATA_DIR: path.join(folder, name) };
    const order = ["sample", "-m", modelFolder, "-p", "a", "--max-tokens", "400"];
    const program = start([...order, "--base-url", "local:"], env);
    await program.sees(/Sample 1:\n[^]+/);
    expect(await program.kill(name).finished).toMatchObject({ code, signalName: null });
  });
});

describe("quickstart", () => {
  const local = ["quickstart", "--base-url", "local:", "--model"];

  it("runs the example with the settings of the command line and ends with its exit code", async () => {
    const env = { TINKER_TS_DATA_DIR: path.join(folder, "quickstart") };
    const { code, out, err } = await runProcess([...local, "nonsense"], { env });
    expect(code).toBe(1);
    expect(out).toContain("This asks nonsense 24 questions");
    expect(err).toMatch(/^Error: .*"nonsense" is not served here/);
    expect(err.trimEnd().split("\n")).toHaveLength(1);
  });

  it("trains a model of the server by default, and fails at once without a server", async () => {
    const live = await LiveServer.start();
    try {
      const program = start(["quickstart", "--base-url", live.url]);
      await program.sees(/This asks qwen3 24 questions/);
      expect(await program.kill("SIGTERM").finished).toMatchObject({ code: 143 });
    } finally {
      await live.stop();
    }
    const { code, out, err } = await runProcess(["quickstart", "--base-url", live.url]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain(`Cannot reach ${live.url}`);
  });

  it("ends with 130 on Ctrl-C, and the example with it", async () => {
    const env = { TINKER_TS_DATA_DIR: path.join(folder, "quickstart") };
    const program = start([...local, modelFolder], env);
    await program.sees(/2\. Training/);
    expect(await program.kill("SIGINT").finished).toMatchObject({ code: 130, signalName: null });
  });
});

describe("serve", () => {
  it("prints one line when it is ready, serves, and ends with 0 on SIGTERM", async () => {
    const server = serve("terminated");
    const [, url = ""] = await server.sees(listening);
    const { code, out } = await runProcess(["models", "--json", "--base-url", url]);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ supported_models: [{ model_name: baseModel }] });
    const chat = ["chat", "-m", baseModel, "--base-url", url, "--max-tokens", "4", "-q"];
    const talk = await runProcess(chat, { input: "Hello\n/exit\n" });
    expect(talk).toMatchObject({ code: 0, err: "" });
    expect(talk.out).toMatch(/\n$/);
    expect(await start(chat).types("/exit\n").finished).toMatchObject({ code: 0, out: "" });
    const ended = await server.kill("SIGTERM").finished;
    expect(ended).toMatchObject({ code: 0, signalName: null });
    expect(ended.out).toMatch(listening);
  });

  it("closes a session that is idle for the given time", async () => {
    const server = serve("silent", "--session-timeout", "1");
    const [, url = ""] = await server.sees(listening);
    const post = (endpoint: string, body: object) =>
      fetch(`${url}/api/v1/${endpoint}`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": "tml-test" },
        body: JSON.stringify(body),
      });
    const opened = await post("create_session", { tags: [], user_metadata: {}, sdk_version: "x" });
    expect(opened.status).toBe(200);
    const closed = /session closed .*no sign of life from its client for 1 s/;
    await expect.poll(() => server.err, { timeout: 60_000 }).toMatch(closed);
  });

  it("names models by the given name, by their folder, or by their id", async () => {
    const models = ["--model", modelFolder, "--model", "some/id", "--model", "other=~/."];
    const server = serve("named", ...models, "--alias", "bot=other");
    const [, url = ""] = await server.sees(listening);
    const asked = await fetch(`${url}/v1/models/bot`);
    expect(await asked.json()).toMatchObject({ id: "bot", root: "other" });
    const { out } = await runProcess(["models", "--json", "--base-url", url]);
    const { supported_models: served } = JSON.parse(out) as {
      readonly supported_models: { readonly model_name: string }[];
    };
    const names = served.map(({ model_name: name }) => name);
    expect(names).toEqual([baseModel, "model", "some/id", "other"]);
    const { err } = await server.kill("SIGTERM").finished;
    expect(err).toContain(`baseURL ${url}/v1`);
  });

  it("ends with 130 on Ctrl-C, and resumes when it is started again", async () => {
    const first = serve("again");
    const [, url = ""] = await first.sees(listening);
    const saved = path.join(folder, "saved.json");
    const save = ["checkpoint", "save", "-m", baseModel, "--rank", "2", "-o", saved];
    expect(await runProcess([...save, "--base-url", url])).toMatchObject({ code: 0 });
    expect(await first.kill("SIGINT").finished).toMatchObject({ code: 130, signalName: null });
    const second = serve("again");
    const [, newUrl = ""] = await second.sees(listening);
    const { weights_path: weights } = JSON.parse(readFileSync(saved, "utf8")) as {
      readonly weights_path: string;
    };
    const info = await runProcess(["checkpoint", "info", weights, "--base-url", newUrl]);
    expect(info).toMatchObject({ code: 0, err: "" });
    expect(await second.kill("SIGTERM").finished).toMatchObject({ code: 0 });
  });

  it("shares its data directory with commands that use local:, while it runs and after", async () => {
    const env = { TINKER_TS_DATA_DIR: path.join(folder, "again") };
    const list = ["checkpoint", "list", "--base-url", "local:"];
    const alone = await runProcess(list, { env });
    expect(alone).toMatchObject({ code: 0, err: "" });
    expect(alone.out).toMatch(/^1 checkpoint\n/);
    const server = serve("again");
    const [, url = ""] = await server.sees(listening);
    const joined = await runProcess(list, { env: { ...env, TINKER_TS_IN_PROCESS: "" } });
    expect(joined).toMatchObject({ code: 0, err: "" });
    expect(joined.out).toBe(alone.out);
    const apart = await runProcess(list, { env });
    expect(apart.code).toBe(1);
    expect(apart.err).toContain(`use it at ${url}`);
    await server.kill("SIGTERM").finished;
  });

  it("requires its key", async () => {
    const server = serve("locked", "--api-key", "tml-first", "--api-key", "tml-second");
    const [, url = ""] = await server.sees(listening);
    const models = ["models", "--base-url", url, "--api-key"];
    expect(await runProcess([...models, "tml-second"])).toMatchObject({ code: 0 });
    const refused = await runProcess([...models, "tml-wrong"]);
    expect(refused.code).toBe(1);
    expect(refused.err).toMatch(/^Error: Authentication failed\n[^]*--api-key or TINKER_API_KEY/);
    await server.kill("SIGTERM").finished;
  });

  it("does not listen for other machines without a key", async () => {
    const { code, out, err } = await serve("open", "--host", "0.0.0.0").finished;
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain("--host: 0.0.0.0 can be reached from other machines; set --api-key");
  });

  it("reports that the port is taken", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const port = String((other.address() as AddressInfo).port);
    const { code, err } = await serve("taken", "--port", port).finished;
    other.close();
    expect(code).toBe(1);
    expect(err).toContain("Another program listens there; choose another --port, or 0.");
  });

  it.each([
    [["--model", "=x"], '"=x" is not NAME=PATH_OR_HUB_ID.'],
    [["--model", `${baseModel}=y`], `${baseModel} is given twice.`],
    [["--alias", "bot"], '"bot" is not NAME=MODEL.'],
    [["--limit", "maxStreams"], '"maxStreams" is not NAME=NUMBER.'],
    [["--limit", "maxTrees=3"], "limits.maxTrees: there is no such limit"],
    [["--weights", "int4"], '"int4" is not [MODEL=]f32 or [MODEL=]int8.'],
    [["--model", "a=/nowhere"], "--model: the folder /nowhere does not exist."],
    [["--model", "a=some/model", "--weights", "b=int8"], '--weights: "b" is not served here'],
    [["--alias", "bot=m", "--alias", "bot=n"], "bot is given twice."],
    [["--api-key", "short"], "--api-key: a key needs at least 8 characters"],
    [["--public-url", "example"], "--public-url: example is not an address"],
  ])("refuses %j", async (options, message) => {
    const { code, out, err } = await serve("refused", ...options).finished;
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain(message);
  });
});
