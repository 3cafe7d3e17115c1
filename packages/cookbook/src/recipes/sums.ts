import { seededRandom } from "../data/index.js";
import { normalized, problemGroup, type EnvironmentGroup } from "../rl/index.js";
import { learnByRewards } from "./by-rewards.js";
import { examSize, percent } from "./exam.js";
import type { Recipe, RecipeContext } from "./recipe.js";

const steps = 80;
const sumsPerStep = 32;
const triesPerSum = 8;
const largest = 10;

/** Only a right sum is good. */
export const recipe: Recipe = {
  name: "sums",
  summary: "Careless with sums becomes careful, by rewards alone",
  teaches: [
    "The model knows how to add and mostly miscounts by one, as the people did whom it learned from.",
    "A program checks answers as right or wrong; what went better than the other tries at the same",
    "sum becomes more probable.",
  ].join(" "),
  async run(context) {
    const { before, after, samplerPath } = await learnByRewards(context, {
      name: "sums",
      steps,
      batch: (step) => drawSums(context, sumsPerStep, triesPerSum, step),
      exam: () => drawSums(context, examSize(context, 64), 4, -1),
      maxTokens: 24,
      learningRate: 2e-3,
      advantages: normalized,
      removeConstantRewardGroups: true,
      onBefore: (exam) =>
        context.say(`Before: ${percent(exam.rate("correct"))} of new sums are right.`),
    });
    return {
      samplerPath,
      checks: [
        { what: "right before", value: before.rate("correct") },
        { what: "right after", value: after.rate("correct"), atLeast: 0.9 },
      ],
    };
  },
};

/** Groups of tries at some sums; those of a batch follow from its number. */
function drawSums(
  { renderer, seed }: RecipeContext,
  count: number,
  size: number,
  batch: number,
): EnvironmentGroup[] {
  const random = seededRandom(seed, batch);
  const number = (): number => 1 + Math.floor(random() * largest);
  return Array.from({ length: count }, () => {
    const [a, b] = [number(), number()];
    const right = `${a} + ${b} = ${a + b}`;
    return problemGroup(
      { prompt: `What is ${a} + ${b}?`, grade: (answer) => answer.trim() === right },
      { renderer, size, tags: ["sums"] },
    );
  });
}
