// Pre-trains tinker-ts/sprout: `npm run pretrain`. A run that was ended goes on where it was.
import { rm } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { embeddedModelFolder } from "@tinker-ts/engine";
import { evaluate, printEvaluation } from "./evaluate.js";
import { pretrain, type PretrainProgress } from "./pretrain.js";
import { sproutRecipe } from "./recipe.js";

const packageFolder = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");

const { values } = parseArgs({
  options: {
    output: { type: "string", default: embeddedModelFolder },
    work: { type: "string", default: path.join(packageFolder, ".cache", "pretrain") },
    fresh: { type: "boolean", default: false },
    threads: { type: "string" },
    steps: { type: "string" },
  },
});
const outputFolder = path.resolve(values.output);
const workFolder = path.resolve(values.work);
if (values.fresh) await rm(workFolder, { recursive: true, force: true });

const interrupted = new AbortController();
process.once("SIGINT", () => interrupted.abort());
process.once("SIGTERM", () => interrupted.abort());

const steps = values.steps === undefined ? sproutRecipe.steps : wholeNumber("steps", values.steps);
try {
  await pretrain({
    recipe: { ...sproutRecipe, steps, decaySteps: Math.min(sproutRecipe.decaySteps, steps) },
    outputFolder,
    workFolder,
    ...(values.threads === undefined ? {} : { threads: wholeNumber("threads", values.threads) }),
    signal: interrupted.signal,
    onProgress: progressLine(),
  });
  console.log(`Wrote ${outputFolder}`);
  printEvaluation(await evaluate(outputFolder));
} catch (error) {
  if (!interrupted.signal.aborted) throw error;
  console.log(`\nInterrupted. Checkpoint in ${workFolder}; the same command goes on from there.`);
  process.exitCode = 130;
}

function wholeNumber(name: string, text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new Error(`--${name} ${text}: give a whole number above 0.`);
}

/** Prints averages over ten steps, so that the line is calm and a log of it short. */
function progressLine(): (progress: PretrainProgress) => void {
  const every = 10;
  let recent: PretrainProgress[] = [];
  return (progress) => {
    recent.push(progress);
    if (progress.step % every !== 0 && progress.step < progress.steps) return;
    const sum = (pick: (one: PretrainProgress) => number) =>
      recent.reduce((total, one) => total + pick(one), 0);
    const tokens = sum(({ stepTokens }) => stepTokens);
    const perSecond = (1000 * tokens) / sum(({ stepMs }) => stepMs);
    const loss = sum(({ loss: ofStep, stepTokens }) => ofStep * stepTokens) / tokens;
    const secondsLeft = ((progress.steps - progress.step) * (tokens / recent.length)) / perSecond;
    console.log(
      `step ${progress.step}/${progress.steps}  ${(progress.tokens / 1e6).toFixed(2)} M tokens  ` +
        `${perSecond.toFixed(0)} tokens/s  loss ${loss.toFixed(4)}  ` +
        `rate ${progress.learningRate.toExponential(2)}  ${(secondsLeft / 60).toFixed(1)} min left`,
    );
    recent = [];
  };
}
