import type { APIStatusError, SamplingClient, TrainingClient } from "tinker-ts";
import type { RouteName } from "tinker-ts/wire";
import { describe, expect } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { json } from "../support/scripted-server.js";
import { datum, describeDialects, serviceTest as it } from "../support/service-test.js";

interface Clients {
  readonly training: TrainingClient;
  readonly sampling: SamplingClient;
}

interface Submission {
  readonly endpoint: RouteName;
  readonly call: (clients: Clients) => PromiseLike<unknown>;
  /** The wait after a transient status: of one HTTP call, or of the loop around it. */
  readonly firstWaitMs: number;
}

const submissions: readonly Submission[] = [
  {
    endpoint: "forwardBackward",
    call: ({ training }) => training.forwardBackward([datum], "cross_entropy"),
    firstWaitMs: 500,
  },
  { endpoint: "optimStep", call: ({ training }) => training.optimStep(), firstWaitMs: 500 },
  {
    endpoint: "loadWeights",
    call: ({ training }) => training.loadState("tinker://r/weights/a"),
    firstWaitMs: 500,
  },
  { endpoint: "saveWeights", call: ({ training }) => training.saveState("a"), firstWaitMs: 1000 },
  {
    endpoint: "saveWeightsForSampler",
    call: ({ training }) => training.saveWeightsForSampler("a"),
    firstWaitMs: 1000,
  },
  {
    endpoint: "sample",
    call: ({ sampling }) => sampling.sample({ prompt: [1] }),
    firstWaitMs: 1000,
  },
];

const passing = [408, 409, 429, 500, 502, 503, 504, 599];
const final = [301, 302, 400, 401, 403, 404, 405, 410, 413, 415, 418, 422, 451];

const open = async (service: FakeService): Promise<Clients> => {
  const client = service.client();
  const training = await client.createLoraTrainingClient({ baseModel: "m" });
  const sampling = await client.createSamplingClient({ baseModel: "m" });
  // Settles the dialect, so that 415 and 422 are about the request and not about its form.
  await training.forwardBackward([datum], "cross_entropy");
  return { training, sampling };
};

/** Answers the next request with a status, makes the call, and returns the outcome. */
const meet = async (
  service: FakeService,
  { endpoint, call }: Submission,
  clients: Clients,
  status: number,
) => {
  service.server.seen.length = 0;
  service.clock.sleeps.length = 0;
  service.server.script(endpoint, json({ detail: "no" }, status));
  const outcome = await call(clients).then(
    () => "accepted",
    (error: APIStatusError) => `${error.status} after ${error.attempts.length}`,
  );
  const bodies = service.server.requestsTo(endpoint).map(({ body }) => body.toString("base64"));
  const distinct = new Set(bodies).size;
  return { status, outcome, sent: bodies.length, distinct, waits: [...service.clock.sleeps] };
};

describeDialects(() => {
  describe.each(submissions)("$endpoint", (submission) => {
    it("is resubmitted unchanged after a transient status", async ({ service }) => {
      const clients = await open(service);
      for (const status of passing) {
        expect(await meet(service, submission, clients, status)).toEqual({
          status,
          outcome: "accepted",
          sent: 2,
          distinct: 1,
          waits: [submission.firstWaitMs],
        });
      }
    });

    it("is resubmitted unchanged after 402", async ({ service }) => {
      const clients = await open(service);
      const waits = [submission.endpoint === "sample" ? 1000 : 5000];
      expect(await meet(service, submission, clients, 402)).toMatchObject({
        outcome: "accepted",
        distinct: 1,
        waits,
      });
    });

    it("fails at once after every other status, and the next one runs", async ({ service }) => {
      const clients = await open(service);
      for (const status of final) {
        expect(await meet(service, submission, clients, status)).toEqual({
          status,
          outcome: `${status} after 1`,
          sent: 1,
          distinct: 1,
          waits: [],
        });
      }
      await submission.call(clients);
    });
  });
});
