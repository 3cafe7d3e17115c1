// Started by device-contract.test.ts: trains and samples on a device; prints numbers for the test to compare.
// node device-contract.mjs <cpu|gpu> <case>...
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Engine, readModelConfig, SafetensorsFile } from "@tinker-ts/engine";

const [device = "cpu", ...cases] = process.argv.slice(2);
const fixture = (name) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));

const runners = { family, losses: everyLoss, long, full, crowd };
const engine = await Engine.create({ device, threads: 2 });

// One line per case, so that an aborted run still prints results.
for (const name of cases) {
  const [kind, argument] = name.split(":");
  const startMs = performance.now();
  const report = await runners[kind](argument);
  const ms = Math.round(performance.now() - startMs);
  console.log(JSON.stringify({ name, device: engine.device.name, ms, report }));
}
await engine.close();

/** Five steps, and what is sampled before and after. */
async function family(name) {
  const expected = JSON.parse(readFileSync(fixture(`${name}/expected.json`), "utf8"));
  const model = await engine.loadModel(fixture(`${name}/model`));
  const adapter = await fixtureAdapter(model, name, expected);
  const data = dataOf(expected, "cross_entropy");
  const before = await sample(model, expected.base_greedy.prompt);
  const [losses, norms] = [[], []];
  let gradients;
  for (let step = 0; step < 5; step++) {
    const { metrics } = await adapter.forwardBackward(data, { lossFn: "cross_entropy" });
    gradients = await adapter.exportGradient();
    const { gradientNorm } = await adapter.optimStep({ learningRate: 1e-3, eps: 1e-6 });
    losses.push(metrics["loss:sum"]);
    norms.push(gradientNorm);
  }
  const after = await sample(model, expected.base_greedy.prompt, await adapter.snapshot());
  await model.unload();
  return { losses, norms, gradients: plain(gradients), before, after };
}

/** Every loss: its value and its gradients. */
async function everyLoss(name) {
  const expected = JSON.parse(readFileSync(fixture(`${name}/expected.json`), "utf8"));
  const model = await engine.loadModel(fixture(`${name}/model`));
  const adapter = await fixtureAdapter(model, name, expected);
  const found = {};
  for (const lossFn of ["importance_sampling", "ppo", "cispo", "dro"]) {
    const { metrics } = await adapter.forwardBackward(dataOf(expected, lossFn), { lossFn });
    const gradients = plain(await adapter.exportGradient());
    await adapter.optimStep({ learningRate: 0 });
    found[lossFn] = { losses: [metrics["loss:sum"]], gradients };
  }
  await model.unload();
  return found;
}

/** Sequences that are long for this device, and for any; two layers, of which one passes its gradient on. */
async function long(length) {
  const whole = await readModelConfig(fixture("qwen3/model"));
  const config = { ...whole, layers: 2, contextLength: 4096 };
  const model = await engine.createModel(config, { seed: 5 });
  const adapter = await model.createAdapter({ rank: 4, seed: 2 });
  const tokens = Array.from({ length: Number(length) }, (_, i) => (i * 7919) % config.vocabSize);
  const data = [{ tokens, inputs: { target_tokens: { data: tokens, shape: [tokens.length] } } }];
  const found = [];
  let gradients;
  for (let step = 0; step < (tokens.length > 2048 ? 1 : 2); step++) {
    const { metrics } = await adapter.forwardBackward(data, { lossFn: "cross_entropy" });
    found.push(metrics["loss:sum"]);
    gradients = plain(await adapter.exportGradient());
    await adapter.optimStep({ learningRate: 1e-2, eps: 1e-3 });
  }
  await model.unload();
  return { losses: found, gradients };
}

/** All weights of a model. */
async function full(name) {
  const expected = JSON.parse(readFileSync(fixture(`${name}/expected.json`), "utf8"));
  const model = await engine.loadModel(fixture(`${name}/model`));
  const tuning = await model.createFullTuning();
  const found = [];
  let gradients;
  for (let step = 0; step < 2; step++) {
    const data = dataOf(expected, "cross_entropy");
    const { metrics } = await tuning.forwardBackward(data, { lossFn: "cross_entropy" });
    found.push(metrics["loss:sum"]);
    gradients = plain(await tuning.exportGradient());
    await tuning.optimStep({ learningRate: 1e-3, eps: 1e-3 });
  }
  await model.unload();
  return { losses: found, gradients };
}

/** Several adapters at once, prompts that begin alike, groups that grow, and a cancelled request. */
async function crowd(name) {
  const model = await engine.loadModel(fixture(`${name}/model`));
  const snapshots = [];
  for (const seed of [1, 2]) {
    const adapter = await model.createAdapter({ rank: 3 + seed, seed });
    const tokens = Array.from({ length: 20 }, (_, i) => (i * seed * 13) % 90);
    const inputs = { target_tokens: { data: tokens, shape: [20] } };
    await adapter.forwardBackward([{ tokens, inputs }], { lossFn: "cross_entropy" });
    await adapter.optimStep({ learningRate: 3e-2 });
    snapshots.push(await adapter.snapshot());
  }
  const prompt = Array.from({ length: 70 }, (_, i) => (i * 31) % 90);
  const stop = new AbortController();
  const request = { prompt, maxTokens: 6, temperature: 0.8, seed: 4 };
  const given = model.sample({ ...request, maxTokens: 200, signal: stop.signal }).catch(() => null);
  const results = await Promise.all([
    model.sample({ ...request, numSamples: 3, adapter: snapshots[0] }),
    model.sample({ ...request, numSamples: 2, adapter: snapshots[1] }),
    model.sample({ ...request, prompt: prompt.slice(0, 40), temperature: 0 }),
  ]);
  stop.abort();
  await given;
  const again = await model.sample({ ...request, prompt: [...prompt, 5], temperature: 0 });
  await model.unload();
  const all = [...results, again].flatMap(({ samples }) => samples);
  return {
    hits: again.promptCacheHitTokens,
    tokens: all.map((one) => Array.from(one.tokens)),
    logprobs: all.flatMap((one) => Array.from(one.logprobs)),
  };
}

async function fixtureAdapter(model, name, { rank, alpha }) {
  const adapter = await model.createAdapter({ rank, alpha });
  const file = await SafetensorsFile.open(fixture(`${name}/adapter/adapter_model.safetensors`));
  const tensors = new Map();
  for (const [key, { shape }] of file.tensors) {
    tensors.set(key, { data: await file.readFloats(key), shape });
  }
  await file.close();
  await adapter.importState({ tensors });
  return adapter;
}

function dataOf({ data }, lossFn) {
  const names = lossFn === "cross_entropy" ? ["weights"] : ["logprobs", "advantages"];
  return data.map((datum) => {
    const shape = [datum.tokens.length];
    const inputs = { target_tokens: { data: datum.target_tokens, shape } };
    for (const name of names) inputs[name] = { data: datum[name], shape };
    return { tokens: datum.tokens, inputs };
  });
}

async function sample(model, prompt, adapter) {
  const { samples, promptLogprobs } = await model.sample({
    prompt,
    maxTokens: 12,
    temperature: 0,
    promptLogprobs: true,
    ...(adapter === undefined ? {} : { adapter }),
  });
  const [{ tokens, logprobs }] = samples;
  const ofPrompt = Array.from(promptLogprobs).slice(1);
  return { tokens: Array.from(tokens), logprobs: [...ofPrompt, ...logprobs] };
}

function plain(tensors) {
  return Object.fromEntries([...tensors].map(([name, { data }]) => [name, Array.from(data)]));
}
