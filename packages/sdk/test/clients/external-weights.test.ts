import { expect } from "vitest";
import { json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";

const path = "tinker://session-0:train:0/external_weights/out";

it("weights are saved as files in their turn, and have addresses", async ({ service }) => {
  const { server } = service;
  const save = "/api/v1/save_weights_external";
  server.answerPath("POST", save, (response, request) =>
    service.accept("SaveWeightsExternalResponse", { path, sizeBytes: 7 })(response, request),
  );
  const urls = { "adapter.safetensors": "https://files.invalid/a" };
  const place =
    "/api/v1/training_runs/session-0:train:0/checkpoints/external_weights/out/external_weights_urls";
  server.answerPath("GET", place, json({ urls, expires: "2026-01-02T03:04:05Z" }));
  const client = service.client();
  const training = await client.createLoraTrainingClient({ baseModel: "m" });
  const [, saved] = await Promise.all([
    training.optimStep(),
    training.saveWeightsExternal("out", { ttlSeconds: 7_200 }),
    training.optimStep(),
  ]);
  expect(saved).toMatchObject({ path, sizeBytes: 7 });
  const sent = server.seen.find((request) => request.path === save)!.json;
  expect(sent).toEqual({
    model_id: "session-0:train:0",
    path: "out",
    seq_id: 2,
    ttl_seconds: 7_200,
    type: "save_weights_external",
  });
  const steps = server.requestsTo("optimStep").map(({ json: body }) => body?.["seq_id"]);
  expect(steps).toEqual([1, 3]);
  const rest = client.createRestClient();
  expect((await rest.getExternalWeightsUrls(path)).urls).toEqual(urls);
  await expect(rest.getExternalWeightsUrls("tinker://r/weights/a")).rejects.toThrow(
    /no path of external weights/,
  );
});

it("a server without them is named with what it lacks", async ({ service }) => {
  const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
  await expect(training.saveWeightsExternal("out")).rejects.toThrow(
    /does not offer POST \/api\/v1\/save_weights_external, which clients call since 0.28.0/,
  );
  await training.optimStep();
});
