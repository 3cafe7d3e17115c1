import {
  ServiceClient,
  type ApiFuture,
  type ForwardBackwardOutput,
  type OptimStepResponse,
  type SampleResponse,
  type SamplingClient,
  type TrainingClient,
} from "tinker-ts";
import { expectTypeOf, it } from "vitest";

// Compiled, never run: the compiler checks it.
const program = async (): Promise<void> => {
  const service = new ServiceClient();
  const training = await service.createLoraTrainingClient({ baseModel: "m" });
  expectTypeOf(training).toEqualTypeOf<TrainingClient>();

  const datum = { modelInput: [1, 2], lossFnInputs: { target_tokens: [2, 3] } };
  const pass = training.forwardBackward([datum], "cross_entropy");
  expectTypeOf(pass).toEqualTypeOf<ApiFuture<ForwardBackwardOutput>>();
  const output = await pass;
  expectTypeOf(output).toEqualTypeOf<ForwardBackwardOutput>();
  expectTypeOf(output.metrics).toEqualTypeOf<Record<string, number>>();
  expectTypeOf(await training.optimStep()).toEqualTypeOf<OptimStepResponse>();
  const { forwardBackward, optimStep } = await training.trainStep([datum], "ppo");
  expectTypeOf(forwardBackward).toEqualTypeOf<ForwardBackwardOutput>();
  expectTypeOf(optimStep).toEqualTypeOf<OptimStepResponse>();

  const sampling = await training.saveWeightsAndGetSamplingClient();
  expectTypeOf(sampling).toEqualTypeOf<SamplingClient>();
  const sampled = await sampling.sample({ prompt: [1], samplingParams: { maxTokens: 3 } });
  expectTypeOf(sampled).toEqualTypeOf<SampleResponse>();
  expectTypeOf(sampled.sequences[0]!.tokens).toExtend<Int32Array>();
  expectTypeOf(await sampling.computeLogprobs([1])).toEqualTypeOf<(number | null)[]>();
  const [first, second] = await Promise.all([pass, sampling.sample({ prompt: [1] })]);
  expectTypeOf(first).toEqualTypeOf<ForwardBackwardOutput>();
  expectTypeOf(second).toEqualTypeOf<SampleResponse>();

  // @ts-expect-error a base model is needed
  await service.createLoraTrainingClient({ rank: 8 });
  // @ts-expect-error options are spelled in camelCase
  await service.createLoraTrainingClient({ base_model: "m" });
  // @ts-expect-error a rank is a number
  await service.createLoraTrainingClient({ baseModel: "m", rank: "8" });
  // @ts-expect-error losses have known names
  training.forwardBackward([datum], "made_up");
  // @ts-expect-error a loss is needed
  training.forwardBackward([datum]);
  // @ts-expect-error data are lists
  training.forwardBackward(datum, "cross_entropy");
  // @ts-expect-error lossFnConfig holds numbers
  training.forwardBackward([datum], "ppo", { lossFnConfig: { clip: "0.2" } });
  // @ts-expect-error Adam has no momentum
  training.optimStep({ momentum: 0.9 });
  // @ts-expect-error a checkpoint has a name
  training.saveState();
  // @ts-expect-error a prompt is needed
  sampling.sample({ samplingParams: {} });
  // @ts-expect-error text must be tokenized first
  sampling.sample({ prompt: "hello" });
  // @ts-expect-error sampling parameters have known names
  sampling.sample({ prompt: [1], samplingParams: { max_tokens: 3 } });
  // @ts-expect-error gradients are needed
  training.forwardBackwardCustom([datum], () => ({ loss: 1 }));
  // @ts-expect-error null means no expiry, leaving it out means nothing
  await service.createRestClient().setCheckpointTtlFromTinkerPath("tinker://r/weights/a");
};

it("wrong arguments do not compile, and results need no annotation", () => {
  expectTypeOf(program).toBeFunction();
});
