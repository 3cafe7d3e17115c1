// Started by gpu.test.ts: checks the GPU, without the named workarounds, and counts what a small model
// moves and holds there.
import { gpuDevice } from "../../dist/gpu/device.js";
import { initialWeights } from "../../dist/model/initial-weights.js";
import { layerSitesOf } from "../../dist/model/sites.js";
import { LoadedModel } from "../../dist/runtime/loaded-model.js";
import { planMemory } from "../../dist/runtime/memory-plan.js";
import { checkDevice, checkedConfig, openDevice } from "../../dist/gpu/self-check.js";
import { TrainedParameters } from "../../dist/runtime/trained-parameters.js";
import { checkSampleOptions } from "../../dist/sample/request.js";
import { FairTurns } from "../../dist/util/turns.js";

const [what, ...leftOut] = process.argv.slice(2);
console.log(JSON.stringify(what === "count" ? await count() : await check()));

async function check() {
  const outcomes = [];
  let open;
  for (const cure of leftOut.length === 0 ? ["nothing"] : leftOut) {
    try {
      open ??= await openDevice({ threads: 2, device: gpuDevice() });
      const { parts } = await checkDevice({ threads: 2, device: gpuDevice([cure]) });
      outcomes.push({ parts });
    } catch (error) {
      outcomes.push({ code: error.code, message: error.message });
    }
  }
  return outcomes;
}

/** What every step of a model of two layers moves, and the arrays that it holds after each. */
async function count() {
  const config = { ...checkedConfig, layers: 2 };
  const signal = new AbortController().signal;
  const model = await LoadedModel.load(
    config,
    { weights: initialWeights(config, 1), folder: null, isLasting: false },
    { threads: 2, device: gpuDevice() },
    planMemory(2 ** 30, 2 ** 20, 0),
    new FairTurns(),
    { signal, onProgress: () => {} },
  );
  const sites = [...layerSitesOf(config), "head"];
  const trained = TrainedParameters.adapter(model, { rank: 8, alpha: 8, seed: 1, sites });
  const lengths = [40, 24];
  const data = lengths.map((length) => {
    const tokens = Array.from({ length }, (_, index) => index);
    return { tokens, inputs: { target_tokens: { data: tokens, shape: [length] } } };
  });
  const request = {
    parameters: 0,
    data,
    lossFn: "cross_entropy",
    lossFnConfig: {},
    backward: true,
  };
  const onProgress = () => {};
  const { traffic, memory } = model.runtime.resident;
  const steps = [];
  for (let step = 0; step < 3; step++) {
    const before = { ...traffic };
    await trained.pass(request, { pause: async () => {}, onProgress });
    const toDeviceBytes = traffic.toDeviceBytes - before.toDeviceBytes;
    const fromDeviceBytes = traffic.fromDeviceBytes - before.fromDeviceBytes;
    // A cancelled pass must not keep anything.
    let pauses = 0;
    const stop = async () => {
      if (++pauses > 3) throw new Error("given up");
    };
    await trained.pass(request, { pause: stop, onProgress }).catch(() => {});
    const options = { prompt: [1, 2, 3], maxTokens: 3, numSamples: 2, seed: 1 };
    await model.sampler.sample({
      options: checkSampleOptions(config, options),
      adapter: trained.freeze(`step-${step}`),
    });
    model.sampler.forget(`step-${step}`);
    await trained.step({ learningRate: 1e-3 });
    // Memory of a request is returned when the sampler is idle.
    await model.sampler.idle();
    steps.push({ toDeviceBytes, fromDeviceBytes, arrays: memory.takenArrays });
  }
  const parameters = trained.state.layout.length;
  await model.release();
  const { hiddenSize, heads, kvHeads } = config;
  const tokens = lengths.reduce((sum, length) => sum + length, 0);
  const shape = { parameters, tokens, hiddenSize, heads, kvHeads };
  return { steps, shape, left: { arrays: memory.takenArrays, bytes: memory.heldBytes } };
}
