// Prints what the engine reaches on this machine, beside what the machine can do at best.
// Run it on an idle machine: `npm run bench -w packages/engine [part ...] [model ...]`, where parts have the names below
// and models, as far as parts have several, are S, M, 0.6B and Qwen3.5-0.8B.
import { Engine } from "@tinker-ts/engine";
import { benchDecoding } from "./decoding.js";
import { benchEndurance } from "./endurance.js";
import { benchMachine } from "./machine.js";
import { benchMemory } from "./memory.js";
import { benchModels, type BenchModelName } from "./models.js";
import { benchPrecision } from "./precision.js";
import { benchFirstStep, benchLongContext } from "./processes.js";
import { benchScores } from "./scores.js";
import { benchGrowth, benchRagged, benchSteps } from "./training.js";
import { benchWindows } from "./windows.js";

const modelNames = Object.keys(benchModels) as BenchModelName[];
const wanted = process.argv.slice(2).filter((word) => !(word in benchModels));
const named = modelNames.filter((name) => process.argv.includes(name));
const isWanted = (part: string): boolean => wanted.length === 0 || wanted.includes(part);
const ofPrecision = (["steps", "decoding", "agreement"] as const).filter(
  (part) => isWanted("precision") || wanted.includes(`precision-${part}`),
);

await benchMachine();
const engine = await Engine.create();
if (isWanted("first-step")) benchFirstStep();
if (isWanted("steps")) await benchSteps(engine);
if (isWanted("ragged")) await benchRagged(engine);
if (isWanted("growth")) await benchGrowth(engine);
if (isWanted("windows")) await benchWindows(engine);
if (isWanted("decoding")) await benchDecoding(engine);
if (isWanted("scores")) await benchScores(engine);
if (ofPrecision.length > 0) {
  await benchPrecision(engine, ofPrecision, named.length > 0 ? named : modelNames);
}
if (isWanted("memory")) await benchMemory(named.length > 0 ? named : modelNames);
if (isWanted("long-context")) benchLongContext();
if (isWanted("endurance")) await benchEndurance(engine);
await engine.close();
