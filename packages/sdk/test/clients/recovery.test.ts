import {
  isLostRun,
  NotFoundError,
  RateLimitError,
  recoverTrainingClient,
  RequestExpiredError,
  RequestFailedError,
  ResultError,
  trainWithRecovery,
  TrainingOrderError,
} from "tinker-ts";
import { routes } from "tinker-ts/wire";
import { describe, expect, test } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { bare, json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";

const checkpoint = (name: string, day: number, type = "training") => ({
  checkpoint_id: `weights/${name}`,
  checkpoint_type: type,
  time: `2026-01-0${day}T00:00:00Z`,
  tinker_path: `tinker://run/weights/${name}`,
});

const prepare = (service: FakeService, ...checkpoints: unknown[]) => {
  service.server.handle("listCheckpoints", () => json({ checkpoints }));
  service.server.handle("weightsInfo", () =>
    json({ base_model: "m", is_lora: true, lora_rank: 8 }),
  );
  service.server.handle("getTrainingRun", () => bare(404));
  return service.client();
};

const loads = (service: FakeService) =>
  service.server
    .requestsTo("loadWeights")
    .map(({ json: body }) => [body?.["path"], body?.["optimizer"]]);

describe("errors that mean a lost run", () => {
  const failed = (category: "server" | "user") =>
    new RequestFailedError("x", { requestId: "r", category });
  const gone = (endpoint: string) =>
    new NotFoundError(404, endpoint, {
      request: { method: "POST", url: `http://h/api/v1/${endpoint}` },
    });
  test.each([
    [new TrainingOrderError("x"), true],
    [new RequestExpiredError("r"), true],
    [failed("server"), true],
    [failed("user"), false],
    [new ResultError("r", "x", { cause: gone("retrieve_future") }), true],
    [gone("optim_step"), true],
    [gone("create_sampling_session"), false],
    [gone("load_weights"), false],
    [new RateLimitError(429, "x"), false],
    [new Error("mine"), false],
    ["text", false],
  ])("%s: %s", (error, isLost) => {
    expect(isLostRun(error)).toBe(isLost);
  });

  test.each([
    "forward",
    "forwardBackward",
    "optimStep",
    "saveWeights",
    "saveWeightsForSampler",
    "getInfo",
    "retrieveFuture",
  ] as const)("a model that %s does not find is lost", (name) => {
    expect(isLostRun(gone(routes[name].path.replace("/api/v1/", "")))).toBe(true);
  });
});

describe("recovery", () => {
  it("resumes from the latest training checkpoint with its optimizer", async ({ service }) => {
    const client = prepare(
      service,
      checkpoint("old", 1),
      checkpoint("new", 3),
      checkpoint("sampler", 4, "sampler"),
    );
    const { client: training, checkpointPath } = await recoverTrainingClient(client, "run");
    expect(checkpointPath).toBe("tinker://run/weights/new");
    expect(loads(service)).toEqual([["tinker://run/weights/new", true]]);
    await training.optimStep();
  });

  it("follows its policy and reports its attempts", async ({ service }) => {
    const client = prepare(service);
    service.server.script("weightsInfo", json({ detail: "no" }, 403), json({ detail: "no" }, 403));
    const events: unknown[] = [];
    await recoverTrainingClient(client, "run", {
      checkpoint: "tinker://run/weights/best",
      withOptimizer: false,
      backoffBaseMs: 100,
      onAttempt: (attempt, path) => events.push([attempt, path]),
      onFailure: (error, delayMs) => events.push([(error as Error).name, delayMs]),
      onRecovered: ({ checkpointPath }) => events.push(checkpointPath),
    });
    const path = "tinker://run/weights/best";
    expect(events).toEqual([
      [1, path],
      ["PermissionDeniedError", 100],
      [2, path],
      ["PermissionDeniedError", 200],
      [3, path],
      path,
    ]);
    expect(loads(service)).toEqual([[path, false]]);
  });

  it("ends after its attempts, and on abort", async ({ service }) => {
    const client = prepare(service);
    const delays: (number | null)[] = [];
    const onFailure = (_: unknown, delayMs: number | null): void => void delays.push(delayMs);
    await expect(
      recoverTrainingClient(client, "run", { maxAttempts: 2, onFailure }),
    ).rejects.toThrow(/no training checkpoint/);
    expect(delays).toEqual([1000, null]);
    const controller = new AbortController();
    await expect(
      recoverTrainingClient(client, "run", {
        signal: controller.signal,
        onFailure: () => controller.abort(new Error("stop")),
      }),
    ).rejects.toThrow("stop");
  });

  it("refuses an invalid policy", async ({ service }) => {
    const client = prepare(service);
    await expect(recoverTrainingClient(client, "run", { maxAttempts: 0 })).rejects.toThrow(
      /^maxAttempts: /,
    );
    await expect(recoverTrainingClient(client, "run", { checkpoint: "x" })).rejects.toThrow(
      /^checkpoint: /,
    );
  });
});

describe("training with recovery", () => {
  it("runs the work again with a recovered client after a loss", async ({ service }) => {
    const client = prepare(service, checkpoint("a", 1));
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    const lost = json({ error: "the machine died", category: "server" });
    const runs: [string, string | null][] = [];
    service.server.script("optimStep", json({ request_id: "lost" }));
    service.server.script("retrieveFuture", lost);
    const result = await trainWithRecovery(client, training, async (current, recovered) => {
      runs.push([current.modelId, recovered?.checkpointPath ?? null]);
      await current.optimStep();
      return "done";
    });
    expect(result).toBe("done");
    expect(runs).toEqual([
      ["session-0:train:0", null],
      ["session-0:train:1", "tinker://run/weights/a"],
    ]);
  });

  it("goes back to the same checkpoint when the recovered run has none yet", async ({
    service,
  }) => {
    const client = prepare(service);
    service.server.script("listCheckpoints", json({ checkpoints: [checkpoint("a", 1)] }));
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    let losses = 2;
    const paths = await trainWithRecovery(client, training, async (_, recovered) => {
      if (losses-- > 0) throw new TrainingOrderError("lost");
      return recovered?.checkpointPath;
    });
    expect(paths).toBe("tinker://run/weights/a");
    expect(loads(service)).toHaveLength(2);
  });

  it("resumes from the recovered run's own checkpoint when that run is lost, too", async ({
    service,
  }) => {
    const client = prepare(service);
    service.server.script(
      "listCheckpoints",
      json({ checkpoints: [checkpoint("a", 1)] }),
      json({ checkpoints: [checkpoint("b", 2)] }),
    );
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    let losses = 2;
    const path = await trainWithRecovery(client, training, async (_, recovered) => {
      if (losses-- > 0) throw new TrainingOrderError("lost");
      return recovered?.checkpointPath;
    });
    expect(path).toBe("tinker://run/weights/b");
  });

  it("asks the server whether the run is corrupted when the error does not say", async ({
    service,
  }) => {
    const client = prepare(service, checkpoint("a", 1));
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    service.server.handle("getTrainingRun", () =>
      json({
        training_run_id: "run",
        base_model: "m",
        model_owner: "me",
        is_lora: true,
        corrupted: true,
        last_request_time: "2026-01-01T00:00:00Z",
      }),
    );
    let isFirst = true;
    await trainWithRecovery(client, training, async () => {
      if (isFirst) {
        isFirst = false;
        throw new RequestFailedError("x", { requestId: "r", category: "user" });
      }
    });
    expect(loads(service)).toHaveLength(1);
  });

  it("rethrows other errors, and fails when the run is lost repeatedly", async ({ service }) => {
    const client = prepare(service, checkpoint("a", 1));
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    const fail = (error: Error) =>
      trainWithRecovery(client, training, () => Promise.reject(error), { maxAttempts: 2 });
    await expect(fail(new Error("my bug"))).rejects.toThrow("my bug");
    expect(loads(service)).toEqual([]);
    await expect(fail(new TrainingOrderError("lost"))).rejects.toThrow("lost");
    expect(loads(service)).toHaveLength(2);
  });
});
