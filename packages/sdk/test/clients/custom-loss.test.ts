import { numpy as np } from "@jax-js/jax";
import { ArgumentError, jaxLoss, TensorData, type CustomLossFn } from "tinker-ts";
import { decodeProto } from "tinker-ts/wire";
import { describe, expect } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { serviceTest as it } from "../support/service-test.js";

const data = [
  { modelInput: [1, 2, 3], lossFnInputs: { target_tokens: [2, 3, 4] } },
  { modelInput: [5, 6], lossFnInputs: { target_tokens: [6, 7], weights: [0.5, 0.25] } },
];
const logprobs = [
  [-1, -2, -3],
  [-0.5, -0.25],
];

/** A service with known logprobs. */
const open = (service: FakeService) => {
  service.server.handle("forwardBackward", () =>
    service.accept("ForwardBackwardOutput", {
      lossFnOutputType: "T",
      lossFnOutputs: logprobs.map((values) => ({ logprobs: { data: Float32Array.from(values) } })),
      metrics: { "loss:sum": 9, "kept:sum": 1 },
    }),
  );
  return service.client().createLoraTrainingClient({ baseModel: "m" });
};

const passes = (service: FakeService) =>
  service.server.requestsTo("forwardBackward").map(({ body }) => {
    const { forwardBackwardInput, forwardOnly, seqId } = decodeProto(
      "ForwardBackwardRequest",
      body,
    );
    return {
      forwardOnly,
      seqId,
      lossFn: forwardBackwardInput.lossFn,
      inputs: forwardBackwardInput.data.map(({ lossFnInputs }) =>
        Object.fromEntries(
          Object.entries(lossFnInputs).map(([name, tensor]) => [name, tensor.toList()]),
        ),
      ),
    };
  });

/** sum(logprob^2); the derivative is twice the logprob. */
const squares: CustomLossFn = (_, tensors) => ({
  loss: tensors
    .flatMap((tensor) => tensor.toList())
    .reduce<number>((s, x) => s + Number(x) ** 2, 0),
  gradients: tensors.map(({ data: values }) =>
    Float32Array.from(values as Float32Array, (x) => 2 * x),
  ),
  metrics: { "loss:sum": 15, "my metric": 7 },
});

describe("a custom loss", () => {
  it("runs forward with zero weights, then backward with the negated gradients", async ({
    service,
  }) => {
    const training = await open(service);
    const seen: unknown[] = [];
    const output = await training.forwardBackwardCustom(data, (datums, tensors) => {
      seen.push(
        datums.map(({ lossFnInputs }) => Object.keys(lossFnInputs)),
        tensors.map((tensor) => tensor.toList()),
      );
      return squares(datums, tensors);
    });
    // The loss sees the data as they were given.
    expect(seen).toEqual([[["target_tokens"], ["target_tokens", "weights"]], logprobs]);
    expect(passes(service)).toEqual([
      {
        forwardOnly: true,
        seqId: 1,
        lossFn: "cross_entropy",
        inputs: [
          { target_tokens: [2, 3, 4], weights: [0, 0, 0] },
          { target_tokens: [6, 7], weights: [0.5, 0.25] },
        ],
      },
      {
        forwardOnly: false,
        seqId: 2,
        lossFn: "cross_entropy",
        inputs: [
          { target_tokens: [2, 3, 4], weights: [2, 4, 6] },
          { target_tokens: [6, 7], weights: [1, 0.5] },
        ],
      },
    ]);
    expect(output.metrics).toEqual({
      "loss:sum": 15,
      "surrogate_loss:sum": 9,
      "kept:sum": 1,
      "my metric": 7,
    });
  });

  it("may be written with jax arrays, with automatic gradients", async ({ service }) => {
    const training = await open(service);
    const loss = jaxLoss((_, arrays: np.Array[]) => {
      const total = arrays.map((array) => np.square(array).sum()).reduce((a, b) => a.add(b));
      return { loss: total, metrics: { "my:sum": np.array(3), plain: 4 } };
    });
    const output = await training.forwardBackwardCustom(data, loss);
    const [, backward] = passes(service);
    expect(backward!.inputs.map(({ weights }) => weights)).toEqual([
      [2, 4, 6],
      [1, 0.5],
    ]);
    expect(output.metrics).toEqual({
      "loss:sum": 14.3125,
      "surrogate_loss:sum": 9,
      "kept:sum": 1,
      "my:sum": 3,
      plain: 4,
    });
  });

  it("in jax may return the bare loss, but only a scalar", async ({ service }) => {
    const training = await open(service);
    await training.forwardBackwardCustom(
      data,
      jaxLoss((_, [first, second]: np.Array[]) => first!.sum().add(second!.sum())),
    );
    expect(passes(service)[1]!.inputs[0]!["weights"]).toEqual([-1, -1, -1]);
    await expect(
      training.forwardBackwardCustom(
        data,
        jaxLoss((_, [first]: np.Array[]) => first!),
      ),
    ).rejects.toThrow();
  });

  it("refuses data that it cannot use, before anything is sent", async ({ service }) => {
    const training = await open(service);
    const call = (lossFnInputs: Record<string, number[]>) => () =>
      training.forwardBackwardCustom([{ modelInput: [1], lossFnInputs }], squares);
    expect(call({ weights: [1] })).toThrow(/needs target_tokens/);
    expect(call({ target_tokens: [1], advantages: [1], logprobs: [1] })).toThrow(
      /not advantages, logprobs/,
    );
    expect(() => training.forwardBackwardCustom([], squares)).toThrow(ArgumentError);
    expect(passes(service)).toEqual([]);
  });

  const bad: readonly [string, CustomLossFn, RegExp][] = [
    ["too few gradients", () => ({ loss: 1, gradients: [] }), /^gradients: .*one array per datum/],
    [
      "a short gradient",
      () => ({ loss: 1, gradients: [[1], [1, 2]] }),
      /^gradients\[0\]: .*\(3\), got 1/,
    ],
    [
      "a gradient of NaN",
      () => ({
        loss: 1,
        gradients: [
          [1, 2, 3],
          [1, Number.NaN],
        ],
      }),
      /^gradients\[1\]\[1\]: must be finite/,
    ],
    ["a loss of infinity", () => ({ loss: Infinity, gradients: [] }), /^loss: .*finite/],
    ["an error", () => Promise.reject(new Error("my own bug")), /my own bug/],
  ];
  it.for(bad)(
    "that returns %s fails before the backward pass",
    async ([, loss, message], { service }) => {
      const training = await open(service);
      await expect(training.forwardBackwardCustom(data, loss)).rejects.toThrow(message);
      expect(passes(service)).toHaveLength(1);
      await training.optimStep();
      expect(service.server.requestsTo("optimStep")[0]!.json).toMatchObject({ seq_id: 2 });
    },
  );

  it("runs both passes before a step that is called after it", async ({ service }) => {
    const training = await open(service);
    const first = training.forwardBackwardCustom(data, squares);
    const second = training.optimStep();
    await Promise.all([first, second]);
    expect(passes(service).map(({ seqId }) => seqId)).toEqual([1, 2]);
    expect(service.server.requestsTo("optimStep")[0]!.json).toMatchObject({ seq_id: 3 });
  });

  it("that never returns can be cancelled", async ({ service }) => {
    const training = await open(service);
    const future = training.forwardBackwardCustom(data, () => new Promise(() => {}));
    await service.server.until(() => service.server.requestsTo("retrieveFuture").length === 2);
    future.cancel(new Error("too slow"));
    await expect(future).rejects.toThrow("too slow");
    await training.optimStep();
  });

  it("needs logprobs of every datum", async ({ service }) => {
    const training = await open(service);
    const output = { lossFnOutputType: "T", lossFnOutputs: [{}] };
    service.server.script("forwardBackward", service.accept("ForwardBackwardOutput", output));
    await expect(training.forwardBackwardCustom(data, squares)).rejects.toThrow(
      /1 outputs for 2 data/,
    );
    const bare = {
      lossFnOutputType: "T",
      lossFnOutputs: [{}, { x: new TensorData({ data: new Float32Array(1) }) }],
    };
    service.server.script("forwardBackward", service.accept("ForwardBackwardOutput", bare));
    await expect(training.forwardBackwardCustom(data, squares)).rejects.toThrow(/no logprobs/);
  });
});
