import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, it } from "vitest";
import { startServer, type RunningServer } from "../src/index.js";
import { realModels } from "./support/real-models.js";

let dataDir: string;
let server: RunningServer;
beforeEach(async () => {
  dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-sockets-"));
  server = await startServer({ port: 0, dataDir, models: realModels, logLevel: "silent" });
});
afterEach(async () => {
  await server.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const post = (endpoint: string, body: unknown, signal?: AbortSignal): Promise<Response> =>
  fetch(`${server.url}/api/v1/${endpoint}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal ? { signal } : {}),
  });

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  return Number(new RegExp(`^${name} (.+)$`, "m").exec(text)?.[1]);
}

/** A request that waits for another one which never comes. */
async function waitingRequest(): Promise<string> {
  const session = { tags: [], user_metadata: {}, sdk_version: "0.25.0" };
  const { session_id } = (await (await post("create_session", session)).json()) as {
    session_id: string;
  };
  await post("create_model", {
    session_id,
    model_seq_id: 0,
    base_model: "qwen3",
    lora_config: { rank: 4 },
  });
  const step = { adam_params: {}, model_id: `${session_id}:train:0`, seq_id: 5 };
  return ((await (await post("optim_step", step)).json()) as { request_id: string }).request_id;
}

it("forgets a poll when its client hangs up", async () => {
  const request_id = await waitingRequest();
  const abort = new AbortController();
  const poll = post("retrieve_future", { request_id }, abort.signal).catch(() => undefined);
  await expect.poll(() => metric("tinker_waiting_polls")).toBe(1);
  abort.abort();
  await poll;
  await expect.poll(() => metric("tinker_waiting_polls")).toBe(0);
});

it("answers polls at once when it is asked to stop", async () => {
  const request_id = await waitingRequest();
  const poll = post("retrieve_future", { request_id });
  await expect.poll(() => metric("tinker_waiting_polls")).toBe(1);
  await server.close();
  expect((await poll).status).toBe(408);
});

it("streams tokens as they come and stops when the client is gone", async () => {
  const body = {
    base_model: "qwen3",
    prompt: { chunks: [{ type: "encoded_text", tokens: [1, 2] }] },
    sampling_params: { max_tokens: 400, temperature: 1, seed: 1 },
  };
  const abort = new AbortController();
  const response = await post("stream_sample", body, abort.signal);
  const reader = response.body!.getReader();
  const { value } = (await reader.read()) as { value: Uint8Array };
  const [first = ""] = Buffer.from(value).toString().split("\n");
  expect(JSON.parse(first)).toMatchObject({ index: 0, token: expect.any(Number) as number });
  abort.abort();
  await reader.closed.catch(() => {});
  const whole = await (await post("stream_sample", body)).text();
  const lines = whole.trim().split("\n");
  expect(lines).toHaveLength(401);
  expect(JSON.parse(lines.at(-1)!)).toHaveProperty("sequences");
});

it("answers a sample while a long training pass is running, and the pass too", async () => {
  const session = { tags: [], user_metadata: {}, sdk_version: "0.25.0" };
  const created = (await (await post("create_session", session)).json()) as { session_id: string };
  const model_id = `${created.session_id}:train:0`;
  const lora_config = { rank: 4 };
  const create = { session_id: created.session_id, model_seq_id: 0, base_model: "qwen3" };
  await post("create_model", { ...create, lora_config });
  const tokens = Array.from({ length: 500 }, (_, index) => (index * 7) % 300);
  const data = Array.from({ length: 60 }, () => ({
    model_input: { chunks: [{ tokens }] },
    loss_fn_inputs: {
      target_tokens: { data: tokens, dtype: "int64", shape: [500] },
      weights: { data: tokens.map(() => 1), dtype: "float32", shape: [500] },
    },
  }));
  const result = async (request_id: string): Promise<unknown> => {
    for (;;) {
      const answer = await post("retrieve_future", { request_id });
      if (answer.status !== 408) return answer.json();
    }
  };
  const pass = (await (
    await post("forward_backward", {
      forward_backward_input: { data, loss_fn: "cross_entropy" },
      model_id,
      seq_id: 1,
    })
  ).json()) as { request_id: string };
  const order: string[] = [];
  const trained = result(pass.request_id).then(() => order.push("pass"));
  await expect
    .poll(async () =>
      (await (await fetch(`${server.url}/metrics`)).text()).includes("create_model"),
    )
    .toBe(true);
  const sample = (await (
    await post("asample", {
      base_model: "qwen3",
      prompt: { chunks: [{ tokens: [1, 2] }] },
      sampling_params: { max_tokens: 2 },
    })
  ).json()) as { request_id: string };
  const sampled = result(sample.request_id).then(() => order.push("sample"));
  await Promise.all([trained, sampled]);
  expect(order).toEqual(["sample", "pass"]);
}, 60_000);

it("continues without a reader of its log", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-pipe-"));
  const program = path.join(import.meta.dirname, "support/serve.mjs");
  const options = { port: 0, dataDir: folder, models: realModels, logLevel: "debug" };
  const child = spawn(process.execPath, [program, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  try {
    const [url] = (await once(createInterface(child.stdout), "line")) as [string];
    child.stderr.destroy();
    for (let request = 0; request < 20; request++) {
      expect((await fetch(`${url}/api/v1/healthz`)).status).toBe(200);
    }
    expect(child.exitCode).toBeNull();
  } finally {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  }
});
