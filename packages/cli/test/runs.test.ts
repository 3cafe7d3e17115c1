import { readFileSync } from "node:fs";
import path from "node:path";
import type { TrainingClient } from "tinker-ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { baseModel, LiveServer } from "./support/live-server.js";

let server: LiveServer;
let runs: TrainingClient[];
let newest: TrainingClient;
let sessionId: string;

const date = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{6})?\+00:00$/;

beforeAll(async () => {
  server = await LiveServer.start();
  runs = [];
  for (const purpose of ["first", "second", "third"]) runs.push(await server.train({ purpose }));
  newest = runs.at(-1)!;
  await newest.saveState("final");
  await newest.saveWeightsForSampler("final");
  [sessionId = ""] = newest.modelId.split(":");
});

afterAll(() => server.stop());

interface RunJson {
  readonly training_run_id: string;
}

describe("run list", () => {
  it("shows every field of every run in JSON, newest first", async () => {
    const { runs: listed } = await server.json<{ runs: RunJson[] }>(["run", "list"]);
    expect(listed.map((run) => run.training_run_id)).toEqual(
      runs.map(({ modelId }) => modelId).toReversed(),
    );
    expect(listed[0]).toEqual({
      training_run_id: newest.modelId,
      base_model: baseModel,
      model_owner: "local",
      is_lora: true,
      corrupted: false,
      lora_rank: 4,
      last_request_time: expect.stringMatching(date) as string,
      last_checkpoint: expect.objectContaining({ checkpoint_id: "weights/final" }) as object,
      last_sampler_checkpoint: expect.objectContaining({
        checkpoint_id: "sampler_weights/final",
        checkpoint_type: "sampler",
      }) as object,
      user_metadata: { purpose: "third" },
    });
  });

  it("prints the number of hidden runs", async () => {
    const { out } = await server.run(["run", "list", "--limit", "2"]);
    expect(out.split("\n")[0]).toBe("2 training runs (1 more not shown, use --limit to see more)");
    expect((await server.run(["run", "list", "--limit", "0"])).out).toMatch(/^3 training runs\n/);
  });

  it("skips --offset runs", async () => {
    const page = await server.json<{ runs: RunJson[] }>(["run", "list", "--offset", "2"]);
    expect(page.runs.map((run) => run.training_run_id)).toEqual([runs[0]!.modelId]);
    const none = await server.run(["run", "list", "--offset", "3"]);
    expect(none).toEqual({ code: 0, out: "No training runs found\n", err: "" });
  });

  it("shows the requested columns", async () => {
    const { out } = await server.run(["run", "list", "-c", "model, checkpoint,owner", "--limit=1"]);
    const [, , headers, , row] = out.split("\n");
    expect(headers).toMatch(/^Base Model +Last Checkpoint +Owner$/);
    expect(row).toMatch(/^qwen3 +weights\/final +local$/);
  });

  it("refuses an unknown column and lists the known ones", async () => {
    const { code, err } = await server.run(["run", "list", "-c", "id,colour"]);
    expect(code).toBe(1);
    expect(err).toContain('Error: Unknown column: "colour"');
    expect(err).toContain("Available columns: id, model, owner, lora, updated, status, checkpoint");
  });

  it("fits the screen and leaves the ids whole", async () => {
    const { out } = await server.run(
      ["run", "list", "-c", "id,model,checkpoint,checkpoint_time,status,owner"],
      { columns: 84, env: { NO_COLOR: "1" } },
    );
    expect(Math.max(...out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(84);
    for (const { modelId } of runs) expect(out).toContain(modelId);
    expect(out).toContain("\u2026");
  });

  it("colours headings on a screen only, and never against NO_COLOR", async () => {
    expect((await server.run(["run", "list"], { columns: 100 })).out).toContain("\u001B[1m");
    const plain = await server.run(["run", "list"], { columns: 100, env: { NO_COLOR: "1" } });
    expect(plain.out).not.toContain("\u001B");
    expect((await server.run(["run", "list"])).out).not.toContain("\u001B");
  });
});

describe("run info", () => {
  it("shows one run", async () => {
    expect(await server.json(["run", "info", newest.modelId])).toMatchObject({
      training_run_id: newest.modelId,
      lora_rank: 4,
      user_metadata: { purpose: "third" },
    });
    const { out } = await server.run(["run", "info", newest.modelId]);
    expect(out).toMatch(new RegExp(`^Training Run: ${newest.modelId}\n`));
    expect(out).toMatch(/^LoRA +Yes \(Rank 4\)$/m);
    expect(out).toMatch(/^Status +OK$/m);
    expect(out).toMatch(/^ {2}- Path +tinker:\/\/.+\/weights\/final$/m);
    expect(out).toMatch(/^Metadata: purpose +third$/m);
  });

  it("ends with 1 for a run that does not exist", async () => {
    const { code, out, err } = await server.run(["run", "info", "nobody"]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^Error: Resource not found\n.*nobody/);
  });
});

describe("session", () => {
  it("list shows the accessible sessions", async () => {
    const { sessions } = await server.json<{ sessions: string[] }>(["session", "list"]);
    expect(sessions).toContain(sessionId);
    const { out } = await server.run(["session", "list", "--limit", "1"]);
    expect(out).toMatch(/^1 session\n\nSession ID\n/);
  });

  it("info shows runs and samplers", async () => {
    expect(await server.json(["session", "info", sessionId])).toEqual({
      session_id: sessionId,
      training_run_ids: expect.arrayContaining(runs.map(({ modelId }) => modelId)) as string[],
      sampler_ids: [],
    });
    const { out } = await server.run(["session", "info", sessionId]);
    expect(out).toMatch(new RegExp(`^${newest.modelId} +training run$`, "m"));
  });

  it("export-trace saves a timeline that Perfetto opens", async () => {
    const file = path.join(server.folder, "deep/er/trace.json");
    const result = await server.run(["session", "export-trace", sessionId, "-o", file]);
    expect(result.code).toBe(0);
    expect(result.err).toContain("Exporting the trace");
    expect(result.out).toContain(`Trace Export: ${sessionId}`);
    const { traceEvents } = JSON.parse(readFileSync(file, "utf8")) as { traceEvents: unknown[] };
    expect(traceEvents.length).toBeGreaterThan(0);
  });

  it("export-trace names the file after the session by default", async () => {
    const json = await server.json(["session", "export-trace", sessionId]);
    const file = path.join(server.folder, `${sessionId}.pftrace`);
    const sizeBytes = readFileSync(file).length;
    expect(json).toEqual({ session_id: sessionId, destination: file, file_size_bytes: sizeBytes });
  });

  it("export-trace --url-only prints an address and nothing else", async () => {
    const { out } = await server.run(["session", "export-trace", sessionId, "--url-only"]);
    expect(out).toMatch(/^http:\/\/\S+\n$/);
    expect((await fetch(out.trim())).status).toBe(200);
    const json = await server.json(["session", "export-trace", sessionId, "--url-only"]);
    expect(json).toEqual({
      session_id: sessionId,
      url: expect.stringMatching(/^http:\/\/\S+$/) as string,
    });
  });

  it("ends with 1 for a session that does not exist", async () => {
    for (const command of ["info", "export-trace"]) {
      const { code, err } = await server.run(["session", command, "nobody"]);
      expect(code).toBe(1);
      expect(err).toMatch(/Error: Resource not found\n/);
    }
  });
});

describe("billing usage", () => {
  const day = (offset: number): string =>
    new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10);
  const window = [day(0), day(1)];

  interface Usage {
    readonly data: { bucket_start: string; event_info: { type: string; token_count: number } }[];
    readonly sessions: Record<string, unknown>;
  }

  it("shows the tokens that were used, nested in JSON", async () => {
    const { data, sessions } = await server.json<Usage>(["billing", "usage", ...window]);
    const training = data.find(({ event_info: info }) => info.type === "training");
    expect(training).toMatchObject({
      bucket_start: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:00:00/) as string,
      base_model: baseModel,
      session_id: sessionId,
    });
    expect(training?.event_info.token_count).toBeGreaterThan(0);
    expect(Object.keys(sessions)).toContain(sessionId);
  });

  it("flattens rows in the table", async () => {
    const { out } = await server.run(["billing", "usage", ...window]);
    expect(out).toMatch(/^\d+ hourly usage rows?\n/);
    expect(out).toMatch(/^bucket_start +bucket_end +base_model .*type .*token_count/m);
    const empty = await server.run(["billing", "usage", "2020-01-01", "2020-01-02"]);
    expect(empty.out).toBe("No billing usage in this window\n");
  });

  it("writes CSV to a file, reports the number of rows, and prints nothing on standard output", async () => {
    const result = await server.run(["billing", "usage", ...window, "--csv", "usage.csv"]);
    expect(result).toMatchObject({ code: 0, out: "" });
    expect(result.err).toMatch(/^Wrote \d+ rows? to usage\.csv\n$/);
    const [header, first] = readFileSync(path.join(server.folder, "usage.csv"), "utf8").split(
      "\r\n",
    );
    expect(header).toMatch(/^bucket_start,bucket_end,base_model,/);
    expect(first!.split(",")).toHaveLength(header!.split(",").length);
  });

  it("writes the sessions as CSV to standard output", async () => {
    const { out, err } = await server.run(["billing", "usage", ...window, "--sessions-csv", "-"]);
    expect(err).toBe("");
    expect(out).toMatch(/^session_id,user_metadata\r\n/);
    expect(out).toContain(`${sessionId},`);
  });

  it("refuses two tables on one stream, and invalid dates", async () => {
    const both = await server.run(["billing", "usage", ...window, "--csv=-", "--sessions-csv=-"]);
    expect(both).toMatchObject({ code: 1, out: "" });
    const wrong = await server.run(["billing", "usage", "yesterday", day(1)]);
    expect(wrong).toMatchObject({ code: 1, out: "" });
    expect(wrong.err).toMatch(/^Error: .*starting.?on/i);
  });
});

describe("models", () => {
  it("lists the server's models", async () => {
    expect(await server.json(["models"])).toEqual({
      supported_models: [{ model_name: baseModel, max_context_length: 512 }],
    });
    const { out } = await server.run(["models"]);
    expect(out).toMatch(/^1 model\n\nModel {2}Context\n.*\nqwen3 {2}512\n$/);
  });
});
